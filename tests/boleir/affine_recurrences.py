"""Seeded random recurrences of the affine family, written as text: decays, reads and writes in any
order and number, micro-steps, gains, bonus terms, left and right acting."""

from __future__ import annotations

import random
import re

import boleir as bole
from boleir.ir import Recurrence

HEADS = ("a", "b", "2", "0.5", "exp(a)", "sigmoid(b)", "(a + b)", "(1 - a)", "k^T p", "a / (1 + b)")
KEYS = ("k", "p", "q", "b * k", "(k + a * p)", "(k - p)", "k * p", "-p", "l2norm(k)")
VALUES = ("v", "w", "b * v", "(v - w)", "v * w", "tanh(w)", "a * w")
DECAYS = {
    "none": "{}",
    "head": "exp(a) * {}",
    "sigmoid": "sigmoid(b) * {}",
    "number": "0.5 * {}",
    "key": "exp(g) * {}",
    "value": "{} * exp(h)",
}
INPUTS = "q: key, k: key, p: key, g: key, v: value, w: value, h: value, a: head, b: head"


def random_body(seed: int) -> str:
    """Statements of one recurrence; every name of `INPUTS` may occur."""
    rng = random.Random(seed)
    right = rng.random() < 0.2
    kind = rng.choice(["none", "head", "sigmoid", "number", "value" if right else "key", "head"])
    if rng.random() < 0.1:
        kind = "key" if right else "value"
    lines: list[str] = []
    state = "S"
    states = ["S"]
    names: list[str] = []
    for step in range(rng.randint(1, 5)):
        state_before, state = state, f"T{step}"
        choice = rng.random()
        if choice < 0.4:
            decay = DECAYS[kind if rng.random() < 0.7 else rng.choice(["none", "head", "number"])]
            lines.append(f"{state} = {decay.format(state_before)}")
        elif choice < 0.6:
            lines.append(f"{state} = {state_before} + {_write(rng, rng.choice(VALUES), right)}")
        else:
            name = f"u{step}"
            lines.append(f"{name} = {_unknown(rng, states, names, right)}")
            names.append(name)
            what = name if rng.random() < 0.6 else f"b * {rng.choice(names)}"
            lines.append(f"{state} = {state_before} + {_write(rng, what, right)}")
        states.append(state)
    lines.append(f"S = {state}")
    states[-1] = "S"
    out = f"{rng.choice(['S', 'S', 'S', states[0] if right else rng.choice(states)])}^T q"
    if rng.random() < 0.3:
        out = f"b * ({out}) + a * v"
    if rng.random() < 0.2:
        out = f"silu(w) * ({out})"
    lines.append(f"out {out}")
    return "\n".join(lines)


def _unknown(rng: random.Random, states: list[str], names: list[str], right: bool) -> str:
    target = rng.choice(KEYS if right else VALUES)
    reads = [_read(rng, rng.choice(states[-2:]), right) for _ in range(rng.choice([1, 1, 1, 2]))]
    body = " - ".join([target, *reads])
    if names and rng.random() < 0.3:
        body += f" - ({rng.choice(HEADS)}) * {rng.choice(names)}"
    if rng.random() < 0.6:
        body = f"({rng.choice(HEADS)}) * ({body})"
    if not right and rng.random() < 0.15:
        body = f"w * ({body})"
    return body


def _read(rng: random.Random, state: str, right: bool) -> str:
    return f"({state} ({rng.choice(VALUES)}))" if right else f"({state}^T ({rng.choice(KEYS)}))"


def _write(rng: random.Random, what: str, right: bool) -> str:
    if right:
        key = what if "u" in what else rng.choice(KEYS)
        return f"({key}) ({rng.choice(VALUES)})^T"
    return f"({rng.choice(KEYS)}) ({what})^T"


def random_recurrence(seed: int) -> Recurrence:
    """The parsed recurrence, its signature cut down to the inputs that occur. A draw that the
    language refuses (a name that is never read) is replaced by the next one."""
    for attempt in range(100):
        body = random_body(1000 * seed + attempt)
        declared = [item.strip() for item in INPUTS.split(",")]
        used = [x for x in declared if re.search(rf"(?<!\w){x.partition(':')[0]}(?![\w(])", body)]
        lines = "\n".join(f"  {line}" for line in body.splitlines())
        try:
            return bole.parse(f"recurrence r{seed}({', '.join(used)})\n{lines}\n")
        except bole.SpecError:
            continue
    raise AssertionError(f"no recurrence for seed {seed}")
