"""Recurrences for the staged schedule that no library has: every decay from the right, decays per
value channel from the left, and what else a normal form can hold on either side."""

TEXTS = {
    "value_decay": """
recurrence value_decay(q: key, k: key, v: value, g: value)
  S = S * exp(g) + k v^T
  out S^T q
""",
    "value_delta": """
recurrence value_delta(q: key, k: key, v: value, g: value, b: value)
  k = l2norm(k)
  S' = S * exp(g)
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
""",
    "value_micro_steps": """
recurrence value_micro_steps(q: key, k: key, p: key, v: value, g: value, h: value, b: head)
  k, p = l2norm(k, p)
  S' = S * exp(-exp(g))
  S'' = S' + k (v - S'^T k)^T
  S = S'' * exp(-exp(h)) + sigmoid(b) * p (v - S''^T p)^T
  out sigmoid(v) * (S^T q) + v
""",
    "value_coupled": """
recurrence value_coupled(q: key, k: key, p: key, v: value, w: value, g: value; a: value)
  k, p, q = l2norm(k, p, q)
  S' = S * sigmoid(g + a)
  S'' = S' + k (v - S'^T k)^T
  S = S'' + p (w - S''^T p)^T + sigmoid(q) w^T
  out S^T q
""",
    "value_before": """
recurrence value_before(q: key, k: key, v: value, g: value, b: head)
  k = l2norm(k)
  out S^T q + v
  u = sigmoid(b) * (v - S^T k)
  S = S * exp(g) + k u^T + q v^T
""",
    "value_convolved": """
recurrence value_convolved(q: key, k: key, v: value, g: value, b: head)
  q, k, v = silu(causal_conv(q, k, v, width=4))
  k = l2norm(k)
  S' = S * exp(g)
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T l2norm(q)
""",
    "right_plain": """
recurrence right_plain(q: key, k: key, v: value, b: head)
  v = l2norm(v)
  u = sigmoid(b) * (k - S v)
  S = S + u v^T
  out S^T q
""",
    "right_value": """
recurrence right_value(q: key, k: key, v: value, g: value, b: head)
  v = l2norm(v)
  S' = S * exp(g)
  u = sigmoid(b) * (l2norm(k) - S' v)
  S = S' + u v^T
  out S^T q
""",
    "right_gain": """
recurrence right_gain(q: key, k: key, v: value, a: head, b: head)
  u = sigmoid(a) * (k - S l2norm(v))
  S = S + (b * u) v^T
  out b * (S^T q) + a * v
""",
    "right_head": """
recurrence right_head(q: key, k: key, v: value, w: value, g: head, b: key)
  v, w = l2norm(v, w)
  S' = exp(g) * S
  S'' = S' + (sigmoid(b) * (k - S' v)) v^T
  S = S'' + (k - S'' w) w^T
  out S^T q
""",
    "right_key": """
recurrence right_key(q: key, k: key, v: value, g: key, b: head)
  v = l2norm(v)
  S' = diag(exp(g)) * S
  u = sigmoid(b) * (k - S' v)
  S = S' + u v^T
  out S^T q
""",
    "right_between": """
recurrence right_between(q: key, k: key, v: value, g: key, b: head, w: key)
  v = l2norm(v)
  S' = diag(exp(g)) * S
  u = sigmoid(b) * (k - S' v)
  out S'^T q
  S = S' + u v^T + w v^T / 4
""",
    "right_before": """
recurrence right_before(q: key, k: key, v: value, w: value, g: value, b: head)
  v, w = l2norm(v, w)
  out sigmoid(w) * (S^T q) + w / 2
  u = sigmoid(b) * (k - S v)
  S = S * exp(g) + u v^T + q w^T / 2
""",
    "right_key_before": """
recurrence right_key_before(q: key, k: key, v: value, g: key, b: key; a: key)
  v = l2norm(v)
  u = sigmoid(b) * (k - S v)
  S = diag(sigmoid(g + a)) * S + u v^T
  out S^T l2norm(q)
""",
    "right_convolved": """
recurrence right_convolved(q: key, k: key, v: value, g: value, b: head)
  q, k, v = silu(causal_conv(q, k, v, width=4))
  v = l2norm(v)
  S' = S * exp(g)
  u = sigmoid(b) * (k - S' v)
  S = S' + u v^T
  out S^T q
""",
}
