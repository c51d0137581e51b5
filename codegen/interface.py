"""What a caller must know about the kernels of a layer: inputs, formats, workspaces, pointer table.

Plain values, so that a compiled folder carries them and a serving process that holds nothing but
binaries checks arguments exactly as a process that has just compiled them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from boleir.errors import CacheError

if TYPE_CHECKING:
    from boleir.codegen.pipeline import Lowered
    from boleir.ir import Input


@dataclass(frozen=True, slots=True)
class Operand:
    """A declared input: `kind` is head, key or value; `heads` x `width` numbers per token, or per
    layer for a parameter."""

    name: str
    kind: str
    heads: int
    width: int

    @property
    def channels(self) -> int:
        """Numbers per token (or per layer)."""
        return self.heads * self.width

    @property
    def shape(self) -> tuple[int, ...]:
        """Trailing shape: [heads], or [heads, width] for a vector."""
        return (self.heads,) if self.kind == "head" else (self.heads, self.width)


@dataclass(frozen=True, slots=True)
class Interface:
    """Everything that arguments are checked against and workspaces are sized by."""

    recurrence: str
    inputs: tuple[Operand, ...]
    """Token inputs in the order of declaration, in `dtype`."""
    parameters: tuple[Operand, ...]
    """Per-layer parameters, in float32."""
    convolved: tuple[str, ...]
    """Inputs behind a causal convolution, in the order of their channels."""
    kept: tuple[str, ...]
    """Those of them that the commit reads after the convolution."""
    key_heads: int
    value_heads: int
    d_k: int
    d_v: int
    max_nodes: int
    max_depth: int
    parents: tuple[int, ...] | None
    """The tree, where it was a constant of the compilation."""
    dtype: str
    """Format of token inputs and convolution windows, in torch's words."""
    state_dtype: str
    outputs: tuple[str, ...]
    """Names of the pointers to the outputs, in order; all [nodes, value_heads, d_v]."""
    out_dtype: str
    conv_channels: int
    """Channels of the convolution window; 0 without a convolution."""
    conv_width: int
    conv_dtype: str
    """Format of the convolution weights."""
    planes: int
    """Planes of float32 row scalars [planes, value_heads, nodes]; 0 when none are stored."""
    folded: int
    """Elements of the folded factors per request; 0 when there are none."""
    folded_dtype: str
    vectors: int
    """Float32 elements per request of vectors that the factors kernel hands over; 0 for none."""
    decayed: int
    """Planes of float32 key vectors [decayed, value_heads, nodes, d_k] that kernels hand over where
    key channels decay apart; 0 for none."""
    products: int
    """Planes of float32 products [products, value_heads, nodes, columns] there; 0 for none."""
    columns: int
    """Entries of a row of products: the nodes of a request, filled up to whole blocks."""
    signals: int
    """Int32 counters per request with which programs of one launch wait for others; 0 for none."""
    unknowns: int
    """Planes of unknowns [unknowns, nodes, value_heads * unknown_width]; 0 when they stay in
    registers."""
    unknown_dtype: str
    unknown_width: int
    """Channels of the unknowns per head: d_v, or d_k where updates act from the right."""
    recorded: tuple[str, ...]
    """Token inputs that a deferred commit keeps for the next verification; none where commits are
    not deferred."""
    recorded_channels: int
    """Elements of a recorded token."""
    pending: int
    """Int32 counts per slot of recorded tokens."""
    table: tuple[str, ...]
    """Names of the pointers that the commit takes per layer, in order."""
    stages: tuple[str, ...]
    """Kernels of a layer in launch order."""
    aligned: tuple[str, ...]
    """Strides that the kernels take to be multiples of 16 elements."""

    @property
    def kept_channels(self) -> int:
        """Channels of convolved inputs that live until the commit."""
        return sum(item.channels for item in self.inputs if item.name in self.kept)

    @property
    def verifying(self) -> tuple[str, ...]:
        """The stages that verify: those behind them are started once per round or less."""
        return tuple(stage for stage in self.stages if stage not in ("commit", "record", "flush"))

    @property
    def words(self) -> int:
        """64-bit ancestor words per node."""
        return -(-self.max_nodes // 64)

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` gives an equal interface back."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Interface:
        """Inverse of `to_json`. Raises `CacheError` for anything else."""
        try:
            parsed: dict[str, Any] = dict(values)
            for name in ("inputs", "parameters"):
                parsed[name] = tuple(Operand(**item) for item in parsed[name])
            listed = ("convolved", "kept", "outputs", "recorded", "table", "stages", "aligned")
            for name in listed:
                parsed[name] = tuple(parsed[name])
            if parsed["parents"] is not None:
                parsed["parents"] = tuple(parsed["parents"])
            return cls(**parsed)
        except (KeyError, TypeError) as error:
            raise CacheError(
                f"the description of the kernels' arguments is not understood ({error})",
                mend="compile again",
            ) from None


def interface_of(lowered: Lowered) -> Interface:
    """The interface of emitted kernels."""
    from boleir.codegen.emit.commit_table import table_columns
    from boleir.codegen.emit.signals import signals
    from boleir.codegen.request import DTYPES

    plan, shapes, context = lowered.plan, lowered.shapes, lowered.context
    names = {triton: torch for torch, triton in DTYPES.items()}
    folded, folded_dtype = _folded(lowered)
    taken = {name for kernel in lowered.kernels for name, _ in kernel.arguments}

    def operand(item: Input) -> Operand:
        heads, width = shapes.heads(item.kind), shapes.width(item.kind)
        return Operand(str(item.name), str(item.kind), heads, width)

    return Interface(
        recurrence=str(plan.name),
        inputs=tuple(operand(item) for item in lowered.recurrence.tokens),
        parameters=tuple(operand(item) for item in lowered.recurrence.parameters),
        convolved=tuple(str(mixed.source.name) for mixed in plan.mixed),
        kept=tuple(str(mixed.source.name) for mixed in plan.mixed if mixed.kept),
        key_heads=shapes.key_heads,
        value_heads=shapes.value_heads,
        d_k=shapes.d_k,
        d_v=shapes.d_v,
        max_nodes=shapes.max_nodes,
        max_depth=shapes.max_depth,
        parents=shapes.parents,
        dtype=shapes.dtype,
        state_dtype=shapes.state_dtype,
        outputs=tuple(readout.pointer for readout in plan.readouts),
        out_dtype=names[_format(lowered, "out") or "fp32"],
        conv_channels=plan.conv_channels,
        conv_width=plan.conv_width,
        conv_dtype=names[_format(lowered, "conv_weight") or "fp32"],
        planes=_planes(lowered) if "rows" in taken else 0,
        folded=folded,
        folded_dtype=names[folded_dtype],
        vectors=_vectors(lowered),
        **_walked(lowered),
        signals=signals(context),
        unknowns=len(plan.pairs) if context.keeps_unknowns else 0,
        unknown_dtype=names[context.unknown_dtype],
        unknown_width=shapes.width(plan.unknown),
        **_deferred(lowered),
        table=tuple(map(str, table_columns(context))),
        stages=tuple(kernel.name for kernel in lowered.kernels),
        aligned=_aligned_strides(lowered),
    )


def _format(lowered: Lowered, argument: str) -> str | None:
    """Element format of a pointer argument, None where no kernel takes it."""
    for kernel in lowered.kernels:
        for name, kind in kernel.arguments:
            if name == argument:
                return kind.removeprefix("*")
    return None


def _planes(lowered: Lowered) -> int:
    from boleir.codegen.emit.prepare import planes

    return planes(lowered.context)


def _folded(lowered: Lowered) -> tuple[int, str]:
    from boleir.codegen.emit.blocked import folded_slots
    from boleir.codegen.emit.handover import (
        folded_dtype,
        folded_tiles,
        left_vectors,
        parts_stored,
        vector_entries,
    )
    from boleir.codegen.emit.staged import path_entries

    context, shapes = lowered.context, lowered.shapes
    if context.schedule.fusion == "staged":
        return shapes.value_heads * path_entries(lowered.plan, shapes), "fp32"
    if not context.schedule.folds:
        return 0, "fp32"
    tiles = folded_slots(context) if context.blocks > 1 else folded_tiles(context)
    rows = left_vectors(context) * vector_entries(context)
    entries = tiles * context.schedule.node_block**2 + rows
    per_head = parts_stored(context) * entries
    return context.systems * per_head, folded_dtype(context)


def _vectors(lowered: Lowered) -> int:
    from boleir.codegen.emit.staged import plane_sizes

    context, shapes = lowered.context, lowered.shapes
    if context.schedule.fusion != "staged":
        return 0
    return shapes.value_heads * sum(plane_sizes(context)) * shapes.max_nodes


def _deferred(lowered: Lowered) -> dict[str, Any]:
    """What deferred commits keep for each slot."""
    from boleir.codegen.emit.deferred import pending_counts, recorded_channels, recorded_places

    context = lowered.context
    channels = recorded_channels(context)
    kept = recorded_places(context) if channels else {}
    return {
        "recorded": tuple(str(item.hint or item.name) for item in kept),
        "recorded_channels": channels,
        "pending": pending_counts(context) if channels else 0,
    }


def _walked(lowered: Lowered) -> dict[str, Any]:
    """Sizes of what walks up the paths leave."""
    from boleir.codegen.emit.key_vectors import columns, product_planes, vector_planes

    context = lowered.context
    products = len(product_planes(context))
    return {
        "decayed": len(vector_planes(context)),
        "products": products,
        "columns": columns(context) if products else 0,
    }


def _aligned_strides(lowered: Lowered) -> tuple[str, ...]:
    found = {
        name
        for spec in lowered.specs()
        for name in spec.aligned
        if not spec.signature[name].startswith("*")
    }
    return tuple(sorted(found))
