"""Seeded random recurrences: well-kinded, with shared nodes and hints that are hard to keep."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction

from boleir.functions import FUNCTIONS
from boleir.ir import (
    Add,
    Call,
    Conv,
    Dim,
    Div,
    Dot,
    Expr,
    Input,
    Kind,
    Mul,
    Neg,
    Number,
    Outer,
    Per,
    Previous,
    Read,
    ReadKey,
    Recurrence,
    Sub,
    walk,
)

HEAD, KEY, VALUE, STATE = Kind.HEAD, Kind.KEY, Kind.VALUE, Kind.STATE

INPUTS = (
    Input(KEY, "q"),
    Input(KEY, "k"),
    Input(VALUE, "v"),
    Input(VALUE, "größe"),
    Input(HEAD, "a"),
    Input(HEAD, "γ"),
    Input(HEAD, "A_log", Per.HEAD),
    Input(KEY, "u", Per.HEAD),
    Input(VALUE, "t1", Per.HEAD),
)
HINTS = (
    "x",
    "u'",
    "q",
    "v",
    "S",
    "S'",
    "S''",
    "exp",
    "d_k",
    "t1",
    "t2",
    "lambda",
    "out",
    "I",
    "2x",
)
NUMBERS = (
    Fraction(2),
    Fraction(-1),
    Fraction(1, 3),
    Fraction(-7, 9),
    Fraction("0.5"),
    Fraction("-0.125"),
    Fraction("1e-6"),
    Fraction("2.5e-30"),
    Fraction(10**12),
    Fraction(12 * 10**9),
    Fraction(1, 3 * 10**20),
)


class Generator:
    """Expressions of a wanted kind, at most `depth` operations deep."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.made: dict[Kind, list[Expr]] = {kind: [] for kind in Kind}

    def recurrence(self) -> Recurrence:
        """A recurrence whose declared inputs are exactly those it uses."""
        update = self.expr(STATE, self.rng.randrange(7))
        self.made[STATE].append(update)
        output = self.expr(VALUE, self.rng.randrange(6))
        used = {node for node in walk(update, output) if isinstance(node, Input)}
        inputs = tuple(item for item in INPUTS if item in used)
        tokens = tuple(item for item in inputs if item.per is Per.TOKEN)
        return Recurrence("r", tokens + tuple(set_difference(inputs, tokens)), update, output)

    def expr(self, kind: Kind, depth: int) -> Expr:
        """A random expression; one that exists already with some probability."""
        known = self.made[kind]
        if known and self.rng.random() < 0.25:
            return self.rng.choice(known)
        made = self._leaf(kind) if depth <= 0 else self.rng.choice(self._rules(kind))(depth - 1)
        known.append(made)
        return made

    def _leaf(self, kind: Kind) -> Expr:
        leaves: list[Expr] = [item for item in INPUTS if item.kind is kind]
        if kind is STATE:
            return Previous(STATE)
        if kind is HEAD:
            leaves += [Dim(HEAD, "d_k"), Dim(HEAD, "d_v"), Number(HEAD, self.rng.choice(NUMBERS))]
        return self.rng.choice(leaves)

    def _hint(self) -> str | None:
        return self.rng.choice(HINTS) if self.rng.random() < 0.3 else None

    def _rules(self, kind: Kind) -> list[Callable[[int], Expr]]:
        rules = [self._negated(kind), self._binary(Add, kind, kind, kind)]
        rules += [self._binary(Sub, kind, kind, kind), self._binary(Mul, kind, HEAD, kind)]
        rules += [self._binary(Mul, kind, kind, HEAD), self._binary(Div, kind, kind, HEAD)]
        if kind in (KEY, VALUE):
            rules += [self._binary(node, kind, kind, kind) for node in (Mul, Div)]
            rules += [self._binary(node, kind, HEAD, kind) for node in (Add, Sub)]
            rules += [self._binary(Add, kind, kind, HEAD), self._convolved(kind)]
        if kind is STATE:
            rules += [self._binary(Mul, STATE, *pair) for pair in ((KEY, STATE), (VALUE, STATE))]
            rules += [self._binary(Mul, STATE, *pair) for pair in ((STATE, KEY), (STATE, VALUE))]
            rules += [self._binary(Outer, STATE, KEY, VALUE)] * 4
        else:
            rules += [self._called(kind)] * 2
        if kind is HEAD:
            rules += [self._binary(Dot, HEAD, x, x) for x in (KEY, VALUE)]
        if kind is KEY:
            rules += [self._binary(ReadKey, KEY, STATE, VALUE)] * 2
        if kind is VALUE:
            rules += [self._binary(Read, VALUE, STATE, KEY)] * 2
        return rules

    def _binary(
        self, node: Callable[..., Expr], kind: Kind, left: Kind, right: Kind
    ) -> Callable[[int], Expr]:
        def make(depth: int) -> Expr:
            a, b = self.expr(left, depth), self.expr(right, depth)
            if isinstance(a, Number) and isinstance(b, Number):
                b = INPUTS[4]  # operations between constants fold, so no text has them
            return node(kind, a, b, hint=self._hint())

        return make

    def _negated(self, kind: Kind) -> Callable[[int], Expr]:
        def make(depth: int) -> Expr:
            operand = self.expr(kind, depth)
            operand = INPUTS[4] if isinstance(operand, Number) else operand
            return Neg(kind, operand, hint=self._hint())

        return make

    def _called(self, kind: Kind) -> Callable[[int], Expr]:
        def make(depth: int) -> Expr:
            function = self.rng.choice(sorted(FUNCTIONS))
            takes = sorted(
                item
                for item in FUNCTIONS[function].takes
                if FUNCTIONS[function].result(item) is kind
            )
            if not takes:
                return self.expr(kind, depth)
            operand = self.expr(self.rng.choice(takes), depth)
            return Call(kind, function, operand, hint=self._hint())

        return make

    def _convolved(self, kind: Kind) -> Callable[[int], Expr]:
        tokens = [item for item in INPUTS if item.kind is kind and item.per is Per.TOKEN]
        return lambda _: Conv(kind, self.rng.choice(tokens), self.rng.choice((2, 4)))


def set_difference(items: tuple[Input, ...], without: tuple[Input, ...]) -> list[Input]:
    """Items that are not in `without`, in order."""
    return [item for item in items if item not in without]
