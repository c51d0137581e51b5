"""From a normal form to the quantities a kernel computes: which vectors lie in memory, which scalars scale them.

A product of vectors is exact when both come straight from memory in 16 bits, so normalisation, gates and write
strengths are kept apart from the vectors they scale: they become *row scalars*, one float32 per node and head, that
multiply rows after the product. The plan lists the row scalars of a recurrence, the vectors they belong to, and the
inputs that a causal convolution mixes along the path before anything else happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from boleir.codegen.rewrite import constant_value, expand_norms, is_constant, is_number, rebuild, split_factors, split_scale
from boleir.derive.normal_form import NormalForm, Pair, Write
from boleir.derive.structure import is_zero, reads_update
from boleir.errors import ScheduleError
from boleir.ir import Call, Conv, Dot, Expr, Input, Kind, Per, Recurrence, walk
from boleir.functions import FUNCTIONS


class NoKernel(ScheduleError):
    """A recurrence whose closed form is known but for which no kernel can be emitted; the reason is named."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """An input after its convolution and activations: stored once per round by the prepare kernel."""

    item: Input
    """Stands for the stored values in the expressions of the plan."""
    source: Input
    width: int
    functions: tuple[str, ...]
    """Elementwise functions applied after the convolution, innermost first."""
    offset: int
    """First channel in the packed rows of all mixed inputs."""
    channels: int


@dataclass(frozen=True, slots=True)
class Scalar:
    """A row scalar: a float32 per node and head."""

    name: str
    expr: Expr
    per_key_head: bool
    """Depends on key vectors alone, so that grouped heads share it."""
    watches: Kind | None = None
    """Kind of the vector it exists to watch: it scales nothing, but is not finite where the vector is not."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A vector as `constant * product of row scalars * base`; `base` is what is loaded or computed elementwise."""

    constant: float
    scalars: tuple[str, ...]
    base: Expr

    @property
    def stored(self) -> bool:
        """Whether the base lies in memory as it is (then products with it are exact in 16 bits)."""
        return isinstance(self.base, Input) and self.base.per is Per.TOKEN


@dataclass(frozen=True, slots=True)
class PairPlan:
    """An erase/write pair in terms of operands; see `boleir.derive.normal_form.Pair`."""

    write: Operand
    erase: Operand
    after_decay: bool
    target: Expr
    coupling: tuple[str | None, ...]
    """Row scalar for each earlier pair, or None where there is no coupling."""
    gain: Expr | None


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A pure write."""

    key: Operand
    value: Expr


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything emission needs to know about a recurrence, apart from schedule and shapes."""

    form: NormalForm
    name: str
    tokens: tuple[Input, ...]
    """Token inputs of the kernels that follow the convolution: mixed ones stand for their sources."""
    parameters: tuple[Input, ...]
    mixed: tuple[Mixed, ...]
    scalars: tuple[Scalar, ...]
    log_decay: Expr | None
    """None when the state does not decay."""
    pairs: tuple[PairPlan, ...]
    writes: tuple[WritePlan, ...]
    query: Operand
    query_after_decay: bool
    inclusive: bool
    """The output reads the new state: C is the inclusive Gram. Otherwise `own_pairs`/`own_writes` give its diagonal."""
    own_pairs: tuple[str | None, ...]
    own_writes: tuple[str | None, ...]
    direct: Expr | None
    gain: Expr | None

    @property
    def conv_width(self) -> int:
        """Taps of the convolution, 1 when there is none."""
        return max((m.width for m in self.mixed), default=1)

    @property
    def conv_channels(self) -> int:
        """Channels of the packed convolution window."""
        return sum(m.channels for m in self.mixed)

    def scalar(self, name: str) -> Scalar:
        """The row scalar called `name`."""
        return next(s for s in self.scalars if s.name == name)

    def is_mixed(self, item: Input) -> Mixed | None:
        """The convolution behind `item`, or None for an input that is used as it comes."""
        return next((m for m in self.mixed if m.item == item), None)


@dataclass(slots=True)
class _Planner:
    """Collects row scalars and mixed inputs while the fields of a normal form are translated."""

    dims: dict[str, int]
    taken: set[str]
    channels: dict[Kind, int]
    mixed: dict[int, Mixed] = field(default_factory=dict)
    scalars: dict[int, Scalar] = field(default_factory=dict)
    offset: int = 0

    def mix(self, root: Expr) -> Expr:
        """Replace every convolution, with the functions right above it, by a stored input."""
        return expand_norms(rebuild(root, self._mixed_input))

    def _mixed_input(self, node: Expr) -> Expr | None:
        functions: list[str] = []
        inner = node
        while isinstance(inner, Call) and FUNCTIONS[inner.fn].elementwise:
            functions.append(inner.fn)
            inner = inner.arg
        if not isinstance(inner, Conv):
            return None
        if node.key not in self.mixed:
            source = inner.arg
            assert isinstance(source, Input)
            name = self._name(f"{source.name}_mixed")
            item = Input(node.kind, name, hint=source.name)
            channels = self.channels[source.kind]
            self.mixed[node.key] = Mixed(item, source, inner.width, tuple(reversed(functions)), self.offset, channels)
            self.offset += channels
        return self.mixed[node.key].item

    def _name(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}{number}", number + 1
        self.taken.add(name)
        return name

    def scalar(self, expr: Expr) -> str:
        """The row scalar for a HEAD expression, named after its hint."""
        if expr.key not in self.scalars:
            hint = "".join(c if c.isalnum() else "_" for c in expr.hint or "") or f"row_{len(self.scalars)}"
            kinds = {node.kind for node in walk(expr) if isinstance(node, Input) and node.per is Per.TOKEN}
            heads = any(isinstance(n, Input) and n.kind is not Kind.KEY for n in walk(expr))
            name = self._name(hint if hint.isascii() and hint.isidentifier() else f"row_{len(self.scalars)}")
            self.scalars[expr.key] = Scalar(name, expr, kinds == {Kind.KEY} and not heads)
        return self.scalars[expr.key].name

    def product(self, factors: list[Expr]) -> tuple[float, tuple[str, ...]]:
        """Constant part and row scalars of a product of HEAD factors."""
        constant, names = 1.0, []
        for factor in factors:
            if is_constant(factor):
                constant *= constant_value(factor, self.dims)
            else:
                names.append(self.scalar(factor))
        return constant, tuple(names)

    def operand(self, expr: Expr) -> Operand:
        """A key-side vector split into scalars and what lies in memory."""
        factors, base = split_scale(self.mix(expr))
        constant, names = self.product(factors)
        if not isinstance(base, Input):
            self._scalars_inside(base)
        return Operand(constant, names, base)

    def guard(self, item: Input) -> None:
        """Make sure that a row scalar sees every entry of a vector, so that one that is not finite is noticed."""
        if item.kind is Kind.HEAD:
            return
        square = Dot(Kind.HEAD, item, item)
        if not any(node == square for scalar in self.scalars.values() for node in walk(scalar.expr)):
            name = self.scalar(replace(square, hint=f"guard_{item.hint or item.name}"))
            self.scalars[square.key] = replace(self.scalars[square.key], name=name, watches=item.kind)

    def weight(self, expr: Expr) -> str | None:
        """A HEAD weight as one row scalar; None for zero."""
        return None if is_zero(expr) else self.scalar(self.mix(expr))

    def value(self, expr: Expr | None) -> Expr | None:
        """A value-side vector whose HEAD parts have become row scalars."""
        if expr is None:
            return None
        mixed = self.mix(expr)
        self._scalars_inside(mixed)
        return mixed

    def _scalars_inside(self, vector: Expr) -> None:
        """Make a row scalar of every HEAD factor that a vector expression multiplies by or adds."""
        for node in walk(vector):
            if node.kind is not Kind.HEAD:
                self.product([f for child in node.children if child.kind is Kind.HEAD for f in split_factors(child)])


def make_plan(form: NormalForm, d_k: int, d_v: int, key_heads: int, value_heads: int) -> Plan:
    """Translate a normal form. Raises `NoKernel` for the classes that have no kernel yet."""
    _refuse(form)
    recurrence = form.recurrence
    planner = _Planner(
        {"d_k": d_k, "d_v": d_v},
        {item.name for item in recurrence.inputs} | _RESERVED,
        {Kind.KEY: key_heads * d_k, Kind.VALUE: value_heads * d_v, Kind.HEAD: value_heads},
    )
    # conv channels are packed in the order of declaration
    for item in recurrence.tokens:
        for root in (recurrence.update, recurrence.output):
            for node in walk(root):
                if isinstance(node, Conv) and node.arg == item:
                    planner.mix(_outermost(root, node))
    log_decay = None if is_number(form.decay, 1) else planner.mix(form.log_decay)
    pairs = tuple(_pair(planner, form, a) for a in range(len(form.pairs)))
    writes = tuple(_write(planner, write) for write in form.writes)
    readout = form.readout
    inclusive = reads_update(replace(form, readout=replace(readout, direct=None, gain=None)))
    query = planner.operand(readout.query.vector)
    own_pairs = () if inclusive else tuple(planner.weight(x) for x in readout.pairs)
    own_writes = () if inclusive else tuple(planner.weight(x) for x in readout.writes)
    direct, gain = planner.value(readout.direct), planner.value(readout.gain)
    sources = {m.source.key for m in planner.mixed.values()}
    used = {n.key for root in (recurrence.update, recurrence.output) for n in walk(root)}
    raw = [item for item in recurrence.tokens if item.key in used and _used_raw(recurrence, item, sources)]
    tokens = tuple(raw) + tuple(m.item for m in planner.mixed.values())
    for item in tokens:
        planner.guard(item)
    return Plan(
        form, recurrence.name, tokens, recurrence.parameters,
        tuple(planner.mixed.values()), tuple(planner.scalars.values()), log_decay, pairs, writes, query,
        readout.query.after_decay, inclusive, own_pairs, own_writes, direct, gain,
    )  # fmt: skip


_RESERVED = frozenset(
    "tl triton state slots out rows mixed folded ancestors cu_nodes near parents window conv_weight capacity path c g head "
    "key_head request start count inside node tile slot".split()
)


def _refuse(form: NormalForm) -> None:
    if form.side != "left":
        raise NoKernel(f"{form.recurrence.name} acts from the right; no kernel is emitted for that side yet")
    if form.decay.kind is not Kind.HEAD:
        raise NoKernel(f"{form.recurrence.name} decays per {form.decay.kind} channel; kernels exist for one decay per head")


def _pair(planner: _Planner, form: NormalForm, index: int) -> PairPlan:
    pair: Pair = form.pairs[index]
    target = planner.value(pair.target)
    assert target is not None
    coupling = tuple(planner.weight(x) for x in pair.coupling)
    return PairPlan(
        planner.operand(pair.write), planner.operand(pair.erase.vector), pair.erase.after_decay, target, coupling,
        planner.value(pair.gain),
    )  # fmt: skip


def _write(planner: _Planner, write: Write) -> WritePlan:
    value = planner.value(write.value)
    assert value is not None
    return WritePlan(planner.operand(write.key), value)


def _outermost(root: Expr, conv: Conv) -> Expr:
    """The longest chain of elementwise functions right above `conv` in `root`."""
    top: Expr = conv
    parents = {node.arg.key: node for node in walk(root) if isinstance(node, Call) and FUNCTIONS[node.fn].elementwise}
    while top.key in parents:
        top = parents[top.key]
    return top


def _used_raw(recurrence: Recurrence, item: Input, convolved: set[int]) -> bool:
    """Whether an input is also used without its convolution."""
    if item.key not in convolved:
        return True
    for root in (recurrence.update, recurrence.output):
        for node in walk(root):
            if not isinstance(node, Conv) and any(child == item for child in node.children):
                return True
    return False
