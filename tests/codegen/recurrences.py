"""Recurrences that no library has, for the corners of emission."""

from __future__ import annotations

from functools import cache

import boleir
from boleir.ir import Recurrence

TEXTS = {
    "value_gate": """
recurrence value_gate(q: key, k: key, v: value, b: value, a: head)
  k = l2norm(k)
  gamma = exp(-exp(a))
  beta = sigmoid(b)
  S = gamma * S
  u = beta * (v - S^T k)
  S = S + k u^T
  out beta * (S^T q) + v
""",
    "hostile_names": """
recurrence hostile_names(key: key, node: key, value: value, right: head, c: head; head: head)
  u = sigmoid(right)
  related = exp(-exp(head + c))
  gram = l2norm(node)
  S = related * S
  finite = u * (value - S^T gram)
  S = S + gram finite^T
  out S^T key
""",
    "two_pairs": """
recurrence two_pairs(q: key, k: key, p: key, v: value, w: value, b: head, a: head)
  k, p = l2norm(k, p)
  b = sigmoid(b)
  gamma = exp(-exp(a))
  S' = gamma * S
  u1 = b * (v - S'^T k)
  u2 = w - b * (S^T p) / 2
  S = S' + k u1^T + p u2^T
  out S^T q
""",
    "three_steps": """
recurrence three_steps(
  q: key, k1: key, k2: key, k3: key, v1: value, v2: value, v3: value, b: head, a: head
)
  k1, k2, k3 = l2norm(k1, k2, k3)
  b = sigmoid(b)
  S = exp(-exp(a)) * S
  S = S + 2 * b * k1 (v1 - S^T k1)^T
  S = S + k2 (v2 - b * (S^T k2))^T
  S = S + b * k3 (v3 - S^T k3)^T
  out S^T q
""",
    "pairs_and_writes": """
recurrence pairs_and_writes(q: key, k: key, p: key, v: value, w: value, b: head, a: head)
  k, p = l2norm(k, p)
  b = sigmoid(b)
  out S^T q + v
  u1 = b * (v - S^T k)
  S = exp(-exp(a)) * S
  S = S + k u1^T + q w^T
  u2 = w - b * (S^T p)
  S = S + p u2^T
""",
    "read_before": """
recurrence read_before(q: key, k: key, v: value, w: value, a: head)
  k = l2norm(k)
  out S^T q + 2 * v
  S = exp(-exp(a)) * S + k (v - S^T k / 2)^T + q w^T
""",
    "computed": """
recurrence computed(q: key, k: key, v: value, a: head)
  q, k, v = sigmoid(q, k, v)
  k = k / 8
  S = exp(-exp(a)) * S
  S = S + k (l2norm(v) - S^T k)^T
  out S^T (q + l2norm(k))
""",
    "fading_by_keys": """
recurrence fading_by_keys(q: key, k: key, v: value, b: head; A: key)
  gamma = exp(-sum(k * k * sigmoid(A)))
  S' = gamma * S
  u = sigmoid(b) * (v - S'^T k)
  S = S' + k u^T
  out S^T q
""",
    "weighted_inside": """
recurrence weighted_inside(q: key, k: key, v: value, b: head)
  k = l2norm(k)
  S = S + k (v - S^T k)^T
  out S^T sigmoid(b * q)
""",
    "entangled": """
recurrence entangled(q: key, k: key, p: key, v: value, b: head; c: key)
  q, k, p = silu(causal_conv(q, k, p, width=3))
  k = l2norm(c * k)
  p = l2norm(p)
  u = sigmoid(b) * (k^T p) * (v - S^T k)
  S = S + p u^T
  out S^T l2norm(l2norm(q) * q)
""",
    "watched": """
recurrence watched(q: key, k: key, p: key, v: value, w: value, a: head)
  k, p = l2norm(k, p)
  S' = exp(-exp(a)) * S
  u = sigmoid(w) * (v - S'^T k)
  T = S' + k u^T
  S = T + k (v / 2 - S'^T p / 2)^T
  out T^T q
""",
    "two_gains": """
recurrence two_gains(q: key, k: key, p: key, v: value, w: value, a: head)
  k, p = l2norm(k, p)
  S' = exp(-exp(a)) * S
  S = S' + k v^T
  out sigmoid(w) * (S'^T q) + sigmoid(v) * (S^T p)
""",
    "of_layer": """
recurrence of_layer(k: key, a: head; c: key, t: value)
  k = l2norm(k)
  S' = exp(-exp(a)) * S
  S = S' + k (t - S'^T k)^T / 2 + c t^T
  out S^T c
""",
    "no_state_products": """
recurrence no_state_products(q: key, k: key, v: value)
  S = S + k v^T
  out S^T q
""",
}


@cache
def recurrence(name: str) -> Recurrence:
    """One of these, or one of the library."""
    return boleir.parse(TEXTS[name]) if name in TEXTS else boleir.load(name)
