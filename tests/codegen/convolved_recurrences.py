"""Recurrences behind a convolution whose commits read different parts of a token."""

from __future__ import annotations

from functools import cache

import boleir
from boleir.ir import Recurrence

TEXTS = {
    "all_but_one_key": """
recurrence all_but_one_key(q: key, k: key, p: key, v: value, w: value, b: head, a: head)
  q, k, v, w = silu(causal_conv(q, k, v, w, width=3))
  k, p = l2norm(k, p)
  S' = exp(-softplus(a)) * S
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T + p w^T
  out S^T q
""",
    "value_alone": """
recurrence value_alone(q: key, k: key, v: value, b: head)
  v = silu(causal_conv(v, width=2))
  k = l2norm(k)
  S = S + k (sigmoid(b) * (v - S^T k))^T
  out S^T q
""",
    "gains_before": """
recurrence gains_before(q: key, k: key, p: key, v: value, w: value, a: head)
  q, k, p, v, w = silu(causal_conv(q, k, p, v, w, width=3))
  k, p = l2norm(k, p)
  out sigmoid(w) * (S^T q) + sigmoid(v) * (S^T p)
  S = exp(-softplus(a)) * S + k v^T
""",
    "normed_in_scalars": """
recurrence normed_in_scalars(q: key, k: key, p: key, v: value, a: head)
  q, k, p, v = silu(causal_conv(q, k, p, v, width=2))
  k = l2norm(k)
  S' = exp(-softplus(a) / (1 + p^T p)) * S
  S = S' + k (v - S'^T k)^T
  out S^T q
""",
    "convolved_in_decays": """
recurrence convolved_in_decays(q: key, k: key, v: value)
  k = silu(causal_conv(k, width=2))
  S' = exp(-(k^T k) / 8) * S
  S = S' + k v^T
  out S^T q
""",
    "gated_by_keys": """
recurrence gated_by_keys(q: key, k: key, g: key, v: value, b: head)
  q, k, v = silu(causal_conv(q, k, v, width=4))
  g = sigmoid(causal_conv(g, width=4))
  k = l2norm(k)
  S' = g * S
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
""",
}


@cache
def recurrence(name: str) -> Recurrence:
    """One of these, or one of the library."""
    return boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
