"""Recurrences with a decay per key channel that no library has."""

TEXTS = {
    "squashed": """
recurrence squashed(q: key, k: key, v: value, f: key, b: head)
  k = l2norm(k)
  S' = diag(sigmoid(f)) * S
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
""",
    "logged": """
recurrence logged(q: key, k: key, v: value, g: key, b: head)
  k = l2norm(k)
  S' = diag(exp(g)) * S
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
""",
    "one_vector": """
recurrence one_vector(k: key, v: value, f: key, a: head)
  k = l2norm(k)
  u = v / 2 - S^T k / 2
  S = diag(exp(-exp(f + a) - exp(a))) * S + k u^T
  out S^T k
""",
    "between": """
recurrence between(q: key, k: key, v: value, f: key)
  S' = diag(exp(-exp(f))) * S
  S = S' + k v^T
  out S'^T q
""",
    "convolved": """
recurrence convolved(q: key, k: key, v: value, f: key, b: head; A_log: head, dt_bias: key)
  q, k, v = silu(causal_conv(q, k, v, width=4))
  k = l2norm(k)
  S' = diag(exp(-exp(A_log) * softplus(f + dt_bias))) * S
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T l2norm(q)
""",
}
"""A decay that is no exponential; one whose logarithm is an input; erase and query along one
vector, before and after the decay, with scalars inside the decay; an output between decay and
write; convolved inputs."""

REFUSED = {
    "two_pairs": """
recurrence two_pairs(q: key, k: key, p: key, v: value, w: value, g: key)
  S' = diag(exp(g)) * S
  u = v - S'^T l2norm(k)
  S = S' + l2norm(k) u^T + l2norm(p) (w - S'^T l2norm(p))^T
  out S^T q
""",
}
"""Recurrences without a kernel."""
