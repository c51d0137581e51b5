"""The recurrence IR: what both front ends produce and everything else consumes.

A `Recurrence` is two expressions over the inputs of one token and the state of the token's parent:
the updated state and the output. There are no statements: an intermediate name of the source
survives only as a `hint` for printing. Expressions form a DAG and compare by structure; spans and
hints do not take part.

    expr  = Input | Previous | Number | Dim                   leaves
          | Neg x | Add x y | Sub x y | Mul x y | Div x y      elementwise, head scalars broadcast
          | Call fn x | Conv x                                 pre-operations
          | Dot x y | Outer k v | Read S k | ReadKey S v       products with their own meaning

Kinds: a HEAD scalar is one number per value head, a KEY vector has d_k entries, a VALUE vector d_v,
and a STATE is a d_k x d_v matrix ("key first" on paper; pools store it value first).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from enum import StrEnum
from fractions import Fraction
from itertools import count
from typing import ClassVar

from boleir.errors import Source, Span

MAX_DEPTH = 200
"""Nesting of one expression: far above any real recurrence, far below Python's stack."""


class Kind(StrEnum):
    """What an expression is, per token and value head."""

    HEAD = "head"
    KEY = "key"
    VALUE = "value"
    STATE = "state"


class Per(StrEnum):
    """Whether an input changes with the token or belongs to the layer (a parameter)."""

    TOKEN = "token"
    HEAD = "head"


_INTERNED: dict[tuple[object, ...], int] = {}
_KEYS = count()  # drawn atomically, so threads never share a key


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Expr:
    """A node. Equality and hash follow `key`, an integer that equal structures share."""

    kind: Kind
    span: Span | None = field(default=None, kw_only=True)
    hint: str | None = field(default=None, kw_only=True)
    key: int = field(init=False)
    depth: int = field(init=False)
    children: tuple[Expr, ...] = field(init=False)
    """Operands, left to right."""

    SHOWN: ClassVar[tuple[str, ...]] = ("kind", "span", "hint", "key", "depth", "children")

    def __post_init__(self) -> None:
        content = [getattr(self, f.name) for f in fields(self) if f.name not in Expr.SHOWN]
        children = tuple(item for item in content if isinstance(item, Expr))
        parts = tuple(item.key if isinstance(item, Expr) else item for item in content)
        identity = (type(self).__name__, self.kind, *parts)
        depth = 1 + max((item.depth for item in children), default=0)
        if depth > MAX_DEPTH:
            from boleir.language.errors import NestingTooDeep

            raise NestingTooDeep(
                f"more than {MAX_DEPTH} operations build on one another "
                "(each term of a long sum is one)",
                span=self.span,
                mend="group long sums: (a + b + ...) + (c + d + ...)",
            )
        object.__setattr__(self, "key", _INTERNED.setdefault(identity, next(_KEYS)))
        object.__setattr__(self, "depth", depth)
        object.__setattr__(self, "children", children)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expr) and self.key == other.key

    def __hash__(self) -> int:
        return self.key

    def __reduce__(self) -> tuple[object, ...]:
        # Keys are private to a process: a copy in another one is built anew.
        names = [f.name for f in fields(self) if f.init]
        return _rebuild, (type(self), {name: getattr(self, name) for name in names})

    def __str__(self) -> str:
        from boleir.language.printer import print_expression

        return print_expression(self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.kind}: {self}>"


def _rebuild(node: type[Expr], values: dict[str, object]) -> Expr:
    return node(**values)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Input(Expr):
    """A declared input: `per` says token or parameter."""

    name: str
    per: Per = Per.TOKEN


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Previous(Expr):
    """The state of the parent (the committed state for a root)."""


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Number(Expr):
    """An exact constant (kind HEAD)."""

    value: Fraction


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Dim(Expr):
    """The head dimension `d_k` or `d_v` as a number (kind HEAD)."""

    name: str


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Neg(Expr):
    """Elementwise negation."""

    arg: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Add(Expr):
    """Elementwise: equal kinds, or HEAD with a vector (added to every entry)."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Sub(Expr):
    """Elementwise, as `Add`."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Mul(Expr):
    """Elementwise: HEAD times anything, or vectors of one kind.

    KEY with STATE is diag(key) S, VALUE with STATE is S diag(value).
    """

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Div(Expr):
    """Elementwise; the divisor is a HEAD scalar or a vector of the same kind, never a state."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Call(Expr):
    """A function of `boleir.functions`: elementwise (exp, ...) or over a vector (l2norm, sum)."""

    fn: str
    arg: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Conv(Expr):
    """Causal depthwise convolution of a token input along the root path.

    The weights belong to the layer.
    """

    arg: Expr
    width: int


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Dot(Expr):
    """x^T y for two vectors of one kind: a HEAD scalar."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Outer(Expr):
    """key value^T: a STATE."""

    left: Expr
    right: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class Read(Expr):
    """state^T key: a VALUE vector."""

    state: Expr
    vector: Expr


@dataclass(frozen=True, eq=False, repr=False, slots=True)
class ReadKey(Expr):
    """state value: a KEY vector (the right-acting read)."""

    state: Expr
    vector: Expr


@dataclass(frozen=True, slots=True)
class Recurrence:
    """One token: the new state and the output, in terms of the inputs and `Previous()`.

    `inputs` is the declared signature in order, token inputs and parameters. An `output` that reads
    the new state contains `update` itself (the same node).
    """

    name: str
    inputs: tuple[Input, ...]
    update: Expr
    output: Expr
    source: Source | None = field(default=None, compare=False)
    more: tuple[Expr, ...] = ()
    """Further outputs over the same states, each a VALUE vector like `output`."""

    @property
    def outputs(self) -> tuple[Expr, ...]:
        """Every output, in order."""
        return (self.output, *self.more)

    def with_output(self, index: int) -> Recurrence:
        """The same states read by output `index` alone, with the inputs that this needs.

        Raises IndexError when there is no such output.
        """
        output = self.outputs[index]
        used = {node.name for node in walk(self.update, output) if isinstance(node, Input)}
        inputs = tuple(item for item in self.inputs if item.name in used)
        return Recurrence(self.name, inputs, self.update, output, self.source)

    @property
    def tokens(self) -> tuple[Input, ...]:
        """Inputs that change with the token, in order of declaration."""
        return tuple(x for x in self.inputs if x.per is Per.TOKEN)

    @property
    def parameters(self) -> tuple[Input, ...]:
        """Inputs that belong to the layer, in order of declaration."""
        return tuple(x for x in self.inputs if x.per is Per.HEAD)

    def __str__(self) -> str:
        from boleir.language.printer import print_recurrence

        return print_recurrence(self)


def number(value: int | Fraction | str, *, span: Span | None = None) -> Number:
    """An exact constant from an integer, a fraction or decimal text."""
    return Number(Kind.HEAD, Fraction(value), span=span)


def walk(*roots: Expr) -> Iterator[Expr]:
    """Every node below `roots` once, operands before the nodes that use them.

    Iterative, and linear in the size of the DAG.
    """
    seen: set[int] = set()
    stack: list[tuple[Expr, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        node, ready = stack.pop()
        if ready:
            yield node
        elif node.key not in seen:
            seen.add(node.key)
            stack.append((node, True))
            stack.extend((child, False) for child in reversed(node.children))


def uses_state(expr: Expr) -> bool:
    """Whether the parent's state occurs in `expr`."""
    return any(isinstance(node, Previous) for node in walk(expr))
