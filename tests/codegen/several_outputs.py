"""Recurrences with several outputs, for every kind of kernel: what they read differs in query, in
time, in what comes beside the state."""

TEXTS = {
    "two_queries": """
recurrence two_queries(q: key, k: key, v: value, p: key, a: head, b: head; A_log: head)
  q, k, v, p = silu(causal_conv(q, k, v, p, width=4))
  q = l2norm(q) / sqrt(d_k)
  k, p = l2norm(k, p)
  S' = exp(-exp(A_log) * softplus(a)) * S
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
  out S^T p
""",
    "surprised": """
recurrence surprised(q: key, k: key, v: value, a: head, b: head)
  k = l2norm(k)
  out S^T q
  S' = exp(-softplus(a)) * S
  surprise = v - S'^T k
  out surprise
  S = S' + k (sigmoid(b) * surprise)^T
  out sigmoid(v) * (S^T q)
""",
    "written_only": """
recurrence written_only(q: key, k: key, v: value, p: key, w: value, a: head)
  S' = exp(-softplus(a)) * S
  out S'^T q
  out S^T l2norm(p) + sigmoid(a) * w
  S = S' + k v^T + l2norm(p) w^T
  out S^T q
""",
    "two_steps": """
recurrence two_steps(q: key, k: key, v: value, p: key, w: value, a: head)
  k, p = l2norm(k, p)
  S = S + k (sigmoid(a) * (v - S^T k))^T
  out S^T q
  S = S + p (sigmoid(a) * (w - S^T p))^T
  out S^T q
""",
    "channel_decays": """
recurrence channel_decays(q: key, k: key, v: value, a: key, b: head)
  k = l2norm(k)
  S' = exp(-softplus(a)) * S
  out S'^T q
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
  out u
""",
    "channel_writes": """
recurrence channel_writes(q: key, k: key, v: value, p: key, a: key)
  out S^T p
  S = exp(-softplus(a)) * S + k v^T
  out S^T q
""",
    "value_strength": """
recurrence value_strength(q: key, k: key, v: value, a: value)
  k = l2norm(k)
  surprise = v - S^T k
  S = S + k (sigmoid(a) * surprise)^T
  out S^T q
  out surprise
""",
    "watching": """
recurrence watching(q: key, k: key, v: value, p: key, a: value)
  S = S + k v^T
  out a * (S^T q) + v * (S^T k)
  out S^T p
""",
    "value_decays": """
recurrence value_decays(q: key, k: key, v: value, a: value, b: head)
  k = l2norm(k)
  S' = S * exp(-softplus(a))
  out S'^T q
  out S^T q
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
""",
    "from_the_right": """
recurrence from_the_right(q: key, k: key, v: value, a: head, b: head)
  v = l2norm(v)
  S' = exp(-softplus(a)) * S
  out S'^T k
  out S^T q
  S = S' + (sigmoid(b) * (k - S' v)) v^T
  out S^T q
""",
}
