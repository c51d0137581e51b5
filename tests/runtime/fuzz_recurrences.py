"""Seeded recurrences for random trials of kernels: the library, the corners of emission, and random
bodies with convolutions, norms and parameters in front."""

from __future__ import annotations

import random
import re

import boleir
from boleir.ir import Recurrence
from tests.boleir.affine_recurrences import INPUTS, random_body
from tests.codegen import key_decays, recurrences

TEXTS = {**recurrences.TEXTS, **key_decays.TEXTS}
VECTORS = ("q", "k", "p", "v", "w")
KEYS = ("q", "k", "p")
ACTIVATIONS = ("silu({})", "{}", "tanh({})")
PARAMETERS = {
    "A": ("head", "a = a - exp(A)"),
    "c": ("key", "k = c * k"),
    "t": ("value", "v = v + t"),
}
"""Parameters by name: their kind, and the statement that uses them."""


def load(spelled: str) -> Recurrence:
    """A recurrence by the name of the library or of a test, or from its text."""
    if "\n" in spelled:
        return boleir.parse(spelled)
    return boleir.parse(TEXTS[spelled]) if spelled in TEXTS else boleir.load(spelled)


def draw(rng: random.Random) -> str:
    """A name, or the text of a random recurrence; kernels need not exist for it."""
    kind = rng.random()
    if kind < 0.4:
        return rng.choice(boleir.names())
    if kind < 0.55:
        return rng.choice(list(TEXTS))
    while True:
        text = _random_text(rng)
        try:
            boleir.parse(text)
        except boleir.SpecError:
            continue
        return text


def _random_text(rng: random.Random) -> str:
    """A body of the affine family behind what models put in front of one."""
    body = random_body(rng.randrange(10**6))
    lines = [f"  {line}" for line in [*_front(rng, body), *body.splitlines()]]
    text = "\n".join(lines)
    declared = [item.strip() for item in INPUTS.split(",")]
    tokens = [item for item in declared if _occurs(item.partition(":")[0], text)]
    layer = [f"{name}: {kind}" for name, (kind, _) in PARAMETERS.items() if _occurs(name, text)]
    signature = ", ".join(tokens) + (f"; {', '.join(layer)}" if layer else "")
    return f"recurrence drawn({signature})\n{text}\n"


def _front(rng: random.Random, body: str) -> list[str]:
    """Convolutions, parameters, norms and a tame gate, each by chance."""
    lines = []
    vectors = [name for name in VECTORS if _occurs(name, body)]
    if rng.random() < 0.35 and vectors:
        some = ", ".join(rng.sample(vectors, rng.randint(1, len(vectors))))
        width = rng.choice([2, 3, 4])
        call = rng.choice(ACTIVATIONS).format(f"causal_conv({some}, width={width})")
        lines.append(f"{some} = {call}")
    for _, statement in PARAMETERS.values():
        if rng.random() < 0.2 and _occurs(statement[0], body):
            lines.append(statement)
    keys = [name for name in KEYS if _occurs(name, body)]
    if rng.random() < 0.75 and keys:
        lines.append(f"{', '.join(keys)} = l2norm({', '.join(keys)})")
    if rng.random() < 0.75 and _occurs("a", body):
        lines.append(rng.choice(["a = -softplus(a)", "a = -exp(a)"]))
    if rng.random() < 0.5 and _occurs("g", body):
        lines.append("g = -softplus(g)")
    return lines


def _occurs(name: str, text: str) -> bool:
    return re.search(rf"(?<![\w^]){name}(?![\w(])", text) is not None
