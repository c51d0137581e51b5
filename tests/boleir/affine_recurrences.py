"""Seeded random recurrences of the affine family, written as text: decays, reads and writes in any
order and number, micro-steps, gains, bonus terms, left and right acting.

`random_body` has the axes of one update; `wide_body` puts parameters of the layer, decays of the
whole update, simultaneous pairs, bonuses and outputs before the update around one. `prove` runs
thousands of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

import boleir as bole
from boleir.ir import Recurrence
from tests.boleir.derive_support import used_inputs

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


LAYER = "A: head, D: head, u: key, s: value"
BEFORE = ("a = a - exp(A)", "k = sigmoid(u) * k", "v = v + s")
"""What parameters of a layer do to the inputs of a token."""
AROUND = (
    "({}) * exp(h)",
    "({}) * sigmoid(s)",
    "exp(A) * ({})",
    "sigmoid(u) * ({})",
    "exp(g) * ({})",
)
"""Decays of the whole update."""
BESIDE = (" + (q^T (u * k)) * v", " + D * v", " + (q^T p) * w", " + (q^T k) * (b * v)")
"""Bonuses and skip connections of an output."""


def wide_body(seed: int) -> str:
    """A random body with more around it: parameters of the layer, a decay of the whole update, a
    pair that reads the parent's state beside all others, a bonus, an output before the update."""
    rng = random.Random(f"wide {seed}")
    *lines, out = random_body(seed).splitlines()
    right = any(re.search(r"[ (](S|T\d) \(", line) for line in lines)
    if rng.random() < 0.2:
        lines.insert(0, rng.choice(BEFORE))
    if rng.random() < 0.2:
        lines[-1] = f"S = {rng.choice(AROUND).format(lines[-1].removeprefix('S = '))}"
    if rng.random() < 0.2:
        pair = _unknown(rng, ["S"], [], right)
        written = f"({pair}) ({rng.choice(VALUES)})^T" if right else _write(rng, pair, right)
        lines[-1] += f" + {written}"
    if rng.random() < 0.25:
        out += rng.choice(BESIDE)
    lines.insert(0 if rng.random() < 0.15 else len(lines), out)
    return "\n".join(lines)


GAINS = ("", "", "w * ", "tanh(v) * ", "b * ", "(w - v) * ", "silu(h) * ")
SCALES = ("{}", "{}", "2 * {}", "b * {}", "-{}", "{} * w")
"""What a right-acting output does to a state that it reads."""


def outputs_body(seed: int) -> str:
    """A wide body whose outputs are anything linear: one or two of them, each a sum of reads of the
    states along the way with gains of their own; right acting, of scaled states and unknowns."""
    rng = random.Random(f"outputs {seed}")
    lines = [line for line in wide_body(seed).splitlines() if not line.startswith("out ")]
    right = any(re.search(r"[ (](S|T\d) \(", line) for line in lines)
    states = [name for line in lines if (name := line.split(" = ")[0]) == "S" or name[0] == "T"]
    names = [name for line in lines if (name := line.split(" = ")[0])[0] == "u" and name != "u"]
    for _ in range(rng.choice([1, 1, 2])):
        lines.append(f"out {' + '.join(_reads(rng, states, names, right))}")
    return "\n".join(lines)


def _reads(rng: random.Random, states: list[str], names: list[str], right: bool) -> list[str]:
    terms = []
    if right:
        state = rng.choice(["S", "S", *states])
        terms = [f"({rng.choice(SCALES).format(state)})^T q"]
        if rng.random() < 0.3:
            terms.append(f"{rng.choice(['a', '2'])} * (({state})^T q)")
        if names and rng.random() < 0.3:
            terms.append(f"(q^T {rng.choice(names)}) * {rng.choice(['v', 'w', '(v - w)'])}")
    else:
        for _ in range(rng.choice([1, 2, 2, 3])):
            read = f"({rng.choice(states)}^T ({rng.choice(['q', 'q', *KEYS])}))"
            terms.append(f"{rng.choice(GAINS)}{read}")
        if names and rng.random() < 0.4:
            terms.append(f"{rng.choice(GAINS)}{rng.choice(names)}")
    return terms + (["(q^T p) * v"] if rng.random() < 0.3 else [])


def random_recurrence(seed: int, body: Callable[[int], str] = random_body) -> Recurrence:
    """The parsed recurrence, its signature cut down to the inputs that occur. A draw that the
    language refuses (a name that is never read) is replaced by the next one."""
    for attempt in range(100):
        drawn = body(1000 * seed + attempt)
        lines = "\n".join(f"  {line}" for line in drawn.splitlines())
        token, layer = used_inputs(drawn, INPUTS), used_inputs(drawn, LAYER)
        signature = f"{token}; {layer}" if layer else token
        try:
            return bole.parse(f"recurrence r{seed}({signature})\n{lines}\n")
        except bole.SpecError:
            continue
    raise AssertionError(f"no recurrence for seed {seed}")


def wide_recurrence(seed: int) -> Recurrence:
    """A draw of `wide_body`, parsed."""
    return random_recurrence(seed, wide_body)


def outputs_recurrence(seed: int) -> Recurrence:
    """A draw of `outputs_body`, parsed."""
    return random_recurrence(seed, outputs_body)
