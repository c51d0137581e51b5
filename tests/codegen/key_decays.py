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
    "constant": """
recurrence constant(q: key, k: key, v: value; A: key)
  k = l2norm(k)
  S' = diag(exp(-exp(A))) * S
  S = S' + k (v - S'^T k)^T
  out S^T q
""",
    "of_parameters": """
recurrence of_parameters(k: key, f: key; c: key, t: value)
  k = l2norm(k)
  S' = diag(sigmoid(f)) * S
  S = S' + k (t - S'^T k)^T + c t^T
  out S^T c
""",
}
"""A decay that is no exponential; one whose logarithm is an input; erase and query along one
vector, before and after the decay, with scalars inside the decay; an output between decay and
write; convolved inputs; decays of the layer alone; values of the layer alone, so that nothing
belongs to one value head."""

WALKED = {
    "two_pairs": """
recurrence two_pairs(q: key, k: key, p: key, v: value, w: value, g: key)
  S' = diag(exp(-exp(g))) * S
  u = v / 2 - S'^T l2norm(k) / 2
  S = S' + l2norm(k) u^T + l2norm(p) (w / 3 - S^T l2norm(p) / 3)^T + q v^T
  out S^T q
""",
    "micro_steps": """
recurrence micro_steps(q: key, k: key, p: key, v: value, w: value, f: key, b: head; A_log: head)
  k, p = l2norm(k, p)
  S = diag(exp(-exp(A_log) * softplus(f))) * S
  u = 2 * sigmoid(b) * (v - S^T k)
  S = S + k u^T
  S = S + p (w - S^T p)^T
  out S^T q
""",
    "value_strength": """
recurrence value_strength(q: key, k: key, v: value, b: value, f: key)
  k = l2norm(k)
  S' = diag(exp(-exp(f))) * S
  S = S' + k (sigmoid(b) * (v - S'^T k))^T
  out S'^T q
""",
    "lasting_steps": """
recurrence lasting_steps(q: key, k: key, p: key, v: value, f: key, h: key, b: head)
  k, p = l2norm(k, p)
  u = sigmoid(b) * (v - S^T k)
  S' = diag(sigmoid(f)) * S + k u^T
  S = S' + (sigmoid(h) * p) v^T
  out sigmoid(b) * (S^T q) + v
""",
}
"""Recurrences that share no inverse between value tiles: two pairs that read before and after the
decay, beside a pure write; two Householder steps; a write strength per value channel, read before
the write; and one that could, with a computed written vector and a scaled output."""

UNSOLVED = {
    "two_writes": """
recurrence two_writes(q: key, p: key, k: key, h: key, v: value, w: value, f: key, a: head, b: head)
  k = l2norm(k)
  out S^T l2norm(p)
  S = diag(sigmoid(f + a)) * S + k (sigmoid(b) * v)^T + (softplus(h) * h) w^T
  out 2 * (S^T q) + w
""",
    "bonus": """
recurrence bonus(q: key, k: key, v: value, b: head; A: key, u: key)
  out (S + (u * k) v^T)^T l2norm(q)
  S = diag(exp(-exp(A))) * S + sigmoid(b) * (k v^T)
  out S^T q
""",
    "no_write": """
recurrence no_write(q: key, g: key)
  S = diag(exp(g)) * S
  out S^T q
""",
}
"""Nothing is solved: outputs before and after the decay, two writes, one along a computed vector,
scalars inside decays and in front of vectors; a bonus beside decays of the layer alone; nothing
that is written."""
