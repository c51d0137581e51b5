"""Planning: from a normal form to operands and row scalars (see `boleir.codegen.plan`)."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from boleir.codegen.naming import stem
from boleir.codegen.plan import (
    Mixed,
    NoKernel,
    Operand,
    PairPlan,
    Plan,
    ReadPlan,
    Scalar,
    WritePlan,
    output_pointer,
)
from boleir.codegen.rewrite import (
    constant_value,
    expand_norms,
    is_constant,
    is_number,
    rebuild,
    split_factors,
    split_scale,
)
from boleir.derive.normal_form import NormalForm, Pair, Readout, Write
from boleir.derive.structure import is_zero, reads_update, require_low_rank
from boleir.functions import FUNCTIONS
from boleir.ir import Add, Call, Conv, Dot, Expr, Input, Kind, Per, Recurrence, walk
from boleir.oracle.stored import convolved_parts


@dataclass(slots=True)
class _Planner:
    """Collects row scalars and mixed inputs while the fields of a normal form are translated."""

    dims: dict[str, int]
    taken: set[str]
    channels: dict[Kind, int]
    stored: dict[int, Expr]
    """What is stored of each convolution, by its key."""
    mixed: dict[int, Mixed] = field(default_factory=dict)
    scalars: dict[int, Scalar] = field(default_factory=dict)
    offset: int = 0

    def mix(self, root: Expr) -> Expr:
        """Replace every convolution, with the functions that always follow, by a stored input."""
        return expand_norms(rebuild(root, self._mixed_input))

    def _mixed_input(self, node: Expr) -> Expr | None:
        functions: list[str] = []
        inner = node
        while isinstance(inner, Call) and FUNCTIONS[inner.fn].elementwise:
            functions.append(inner.fn)
            inner = inner.arg
        if not isinstance(inner, Conv) or self.stored[inner.key] != node:
            return None
        if node.key not in self.mixed:
            source = inner.arg
            assert isinstance(source, Input)
            name = self._name(f"{source.name}_mixed")
            item = Input(node.kind, name, hint=source.name)
            channels, applied = self.channels[source.kind], tuple(reversed(functions))
            self.mixed[node.key] = Mixed(
                item, source, inner.width, applied, self.offset, channels,
                kept=True, column=self.offset,
            )  # fmt: skip
            self.offset += channels
        return self.mixed[node.key].item

    def _name(self, wanted: str) -> str:
        wanted = f"{wanted}_row" if is_local(wanted) else wanted
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}_{number}", number + 1
        self.taken.add(name)
        return name

    def scalar(self, expr: Expr) -> str:
        """The row scalar for a HEAD expression, named after its hint."""
        if expr.key not in self.scalars:
            inputs = [node for node in walk(expr) if isinstance(node, Input)]
            of_key_head = bool(inputs) and all(x.kind is Kind.KEY for x in inputs)
            per_token = any(x.per is Per.TOKEN for x in inputs)
            name = self._name(stem(expr))
            self.scalars[expr.key] = Scalar(name, expr, of_key_head and per_token)
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
        """Make sure that a row scalar tells whether every entry of a vector is finite: its sum of
        squares, or the inverse root of that, which is zero for an infinite vector."""
        if item.kind is Kind.HEAD:
            return
        square = Dot(Kind.HEAD, item, item)
        if not any(_tells(scalar.expr, square) for scalar in self.scalars.values()):
            name = self.scalar(replace(square, hint=f"guard_{item.hint or item.name}"))
            self.scalars[square.key] = replace(
                self.scalars[square.key], name=name, watches=item.kind
            )

    def weight(self, expr: Expr) -> str | None:
        """A HEAD weight as one row scalar; None for zero."""
        return None if is_zero(expr) else self.scalar(self.mix(expr))

    def value(self, expr: Expr | None) -> Expr | None:
        """A vector whose HEAD parts have become row scalars."""
        if expr is None:
            return None
        mixed = self.mix(expr)
        if mixed.kind is Kind.HEAD:
            self.product(split_factors(mixed))
        self._scalars_inside(mixed)
        return mixed

    def _scalars_inside(self, vector: Expr) -> None:
        """Make a row scalar of every HEAD factor that a vector expression multiplies by or adds."""
        for node in walk(vector):
            if node.kind is not Kind.HEAD:
                self.product(
                    [
                        f
                        for child in node.children
                        if child.kind is Kind.HEAD
                        for f in split_factors(child)
                    ]
                )


def make_plan(form: NormalForm, d_k: int, d_v: int, key_heads: int, value_heads: int) -> Plan:
    """Translate a normal form. Raises `NoKernel` for what kernels cannot name or hold, and
    `RankTooLarge` where they would be no gain."""
    _refuse(form)
    require_low_rank(form, d_k, d_v)
    recurrence = form.recurrence
    planner = _Planner(
        {"d_k": d_k, "d_v": d_v},
        {item.name for item in recurrence.inputs} | _RESERVED,
        {Kind.KEY: key_heads * d_k, Kind.VALUE: value_heads * d_v, Kind.HEAD: value_heads},
        convolved_parts(form),
    )
    # conv channels are packed in the order of declaration
    for item in recurrence.tokens:
        for root in (recurrence.update, *recurrence.outputs):
            for node in walk(root):
                if isinstance(node, Conv) and node.arg == item:
                    planner.mix(planner.stored[node.key])
    log_decay, decays = _decays(planner, form)
    pairs = tuple(_pair(planner, form, a) for a in range(len(form.pairs)))
    writes = tuple(_write(planner, write) for write in form.writes)
    some = [pair.erase for pair in reversed(pairs)] + [write.key for write in writes]
    readouts = tuple(
        _read(planner, form, number, readout, some) for number, readout in enumerate(form.readouts)
    )
    sources = {m.source.key for m in planner.mixed.values()}
    used = {n.key for n in walk(recurrence.update, *recurrence.outputs)}
    raw = [
        item
        for item in recurrence.tokens
        if item.key in used and _used_raw(recurrence, item, sources)
    ]
    tokens = tuple(raw) + tuple(m.item for m in planner.mixed.values())
    for item in tokens:
        planner.guard(item)
    return Plan(
        form, recurrence.name, tokens, recurrence.parameters, tuple(planner.mixed.values()),
        tuple(planner.scalars.values()), log_decay, *decays, pairs, writes, readouts,
    )  # fmt: skip


_RESERVED = frozenset(
    """
    RECORDED channels pending recorded recorded_stride steps tokens value_head
    B_K B_V COLUMNS D_K D_V FACTOR_HEADS GROUP KEPT_CHANNELS MAX_NODES NODE_BLOCK NODE_BLOCKS
    KEY_HEADS PASSING_CHANNELS PATH PREPARING SIGNALS VALUE_HEADS VALUE_TILES WALKING tl triton
    accepted ancestors batch capacity
    conv_weight cu_nodes decayed depths folded mixed near out out_stride passing precise_exp
    products rows signals slots state state_stride table target_slots track_nodes track_slots
    unknowns vectors window window_stride one_preparation one_system one_tile replay
    """.split()  # noqa: SIM905
)
"""Names with a meaning of their own in emitted modules: inputs must not take them."""

_LOCALS = frozenset(
    """
    node_up inside_up decay_up nothing highest size c_sums
    ahead behind plane row_tile which is_system later prepared ready requests shared system turn
    anchored beyond c_eighths diagonal far first_head g_hi g_lo groups grown key_step key_sums
    leaving path_above path_bits path_entries path_mask path_pairs path_row path_word rate reach
    row_part seen_at zero
    shrunk walked count_at entries member minus_h node_there position rows_again start_position
    state_row tile_at tile_key waiting within
    above accepted_node back bad bad_nodes below bit block c c_above c_above_rest c_rest cell
    channel channel_tile column count current decay decay_above decay_reached deepest depth
    earlier end entry erase erase_row erased exists finite first fold g g_eighths g_path
    g_pieces g_rest gain gate gates gates_reached gates_size going gram_rows h head here highest
    highest_ identity in_tree inside inverse j k kept key key_head last launch layer left left_
    length level live lost minus_g minus_seen moved near new node node_block node_tile old on_path
    out_row out_rows out_step out_tile own packed parent parent_decay passed passed_above path
    piece place poisoned program query_decayed reached read readout related request right row
    scale share_ signals_head slot start state_rows state_tile step stored sums systems tap
    target_slot tile total track_node track_slot tracked u unit v valid value value_tile
    vector_place vector_rows weight window word word_index write_readout written
    """.split()  # noqa: SIM905
)
"""Variables of emitted kernels, without the numbers they may end in: row scalars leave them."""


def is_local(name: str) -> bool:
    """Whether emitted kernels may have a variable `name` of their own."""
    stem = re.sub(r"\d*(_o\d+)?$", "", name)
    return stem in _LOCALS or name.endswith(("_reached", "_source"))


def _tells(scalar: Expr, square: Expr) -> bool:
    """Whether a row scalar shows that `square` is not finite: other functions may hide it."""
    if isinstance(scalar, Call) and scalar.fn == "rsqrt":
        inner = scalar.arg.left if isinstance(scalar.arg, Add) else scalar.arg
        return inner == square
    return scalar == square


def _refuse(form: NormalForm) -> None:
    name = form.recurrence.name
    outputs = {output_pointer(number) for number in range(len(form.readouts))}
    strides = {f"{x}_stride" for x in (*outputs, *(item.name for item in form.recurrence.tokens))}
    for item in form.recurrence.inputs:
        if item.name in _RESERVED | outputs | strides:
            raise NoKernel(
                f"{name}: {item.name!r} already means something in emitted kernels",
                span=item.span,
                mend="give the input another name",
            )
    recurrence = form.recurrence
    nodes = walk(recurrence.update, *recurrence.outputs)
    widths = sorted({node.width for node in nodes if isinstance(node, Conv)})
    if len(widths) > 1:
        raise NoKernel(
            f"{name} convolves with widths {' and '.join(map(str, widths))}; kernels keep one "
            "window for all convolved inputs",
            mend="one width, with leading zero weights for the shorter",
        )


_ChannelDecays = tuple[Expr | None, Expr | None, Expr | None, Expr | None]


def _decays(planner: _Planner, form: NormalForm) -> tuple[Expr | None, _ChannelDecays]:
    """The logarithm of a decay per head; the factors per key channel with their logarithm where
    keys are written along, and per value channel; the logarithm where it is the channels of the
    unknowns that decay."""
    kind = form.decay.kind
    if is_number(form.decay, 1):
        return None, (None, None, None, None)
    if kind is Kind.HEAD:
        return planner.mix(form.log_decay), (None, None, None, None)
    factors = planner.value(form.decay)
    if kind is Kind.KEY and form.side != "right":
        return None, (factors, planner.value(form.log_decay), None, None)
    unknown = Kind.KEY if form.side == "right" else Kind.VALUE
    log = planner.value(form.log_decay) if kind is unknown and form.pairs else None
    by_value = kind is Kind.VALUE
    return None, (None if by_value else factors, None, factors if by_value else None, log)


def _pair(planner: _Planner, form: NormalForm, index: int) -> PairPlan:
    pair: Pair = form.pairs[index]
    target = planner.value(pair.target)
    assert target is not None
    coupling = tuple(planner.weight(x) for x in pair.coupling)
    write = None if is_zero(pair.write) else planner.operand(pair.write)
    erase = planner.operand(pair.erase.vector)
    # A pair that nothing is written along still names a vector, so that emission needs no case.
    return PairPlan(
        write or Operand(0.0, (), erase.base), erase, pair.erase.after_decay,
        target, coupling, planner.value(pair.gain),
    )  # fmt: skip


def _read(
    planner: _Planner, form: NormalForm, number: int, readout: Readout, some: list[Operand]
) -> ReadPlan:
    """One output; `some` vectors stand in for the query of one that reads the state through its own
    pairs alone, or not at all."""
    whole = replace(readout, direct=None, gain=None)
    inclusive = reads_update(replace(form, readout=whole))
    zero = is_zero(readout.query.vector)
    query = Operand(0.0, (), some[0].base) if zero else planner.operand(readout.query.vector)
    return ReadPlan(
        number, form.recurrence.outputs[number], query, readout.query.after_decay, inclusive,
        () if inclusive else tuple(planner.weight(x) for x in readout.pairs),
        () if inclusive else tuple(planner.weight(x) for x in readout.writes),
        planner.value(readout.direct), planner.value(readout.gain),
    )  # fmt: skip


def _write(planner: _Planner, write: Write) -> WritePlan:
    value = planner.value(write.value)
    assert value is not None
    return WritePlan(planner.operand(write.key), value)


def _used_raw(recurrence: Recurrence, item: Input, convolved: set[int]) -> bool:
    """Whether an input is also used without its convolution."""
    if item.key not in convolved:
        return True
    nodes = walk(recurrence.update, *recurrence.outputs)
    return any(
        not isinstance(node, Conv) and any(child == item for child in node.children)
        for node in nodes
    )
