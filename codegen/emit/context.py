"""What all emission helpers look at: plan, shapes and schedule, and what follows from them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from boleir.codegen.digits import keeps_digits
from boleir.codegen.emit.text import bracket
from boleir.codegen.plan import Plan, Scalar
from boleir.codegen.request import DTYPES, Shapes
from boleir.codegen.schedule import Schedule, blocks, looped
from boleir.derive.normal_form import NormalForm
from boleir.errors import Span
from boleir.ir import Expr, Input, Kind, Read, ReadKey, walk

LOG2_E = "1.4426950408889634"
LARGEST = "3.0e38"
"""Above this a number counts as not finite."""

LOWEST = "-4096.0"
"""Bound of a node's log-decay in base 2: nothing is left of a state, and sums over a path of 256
nodes are still exact in eighths."""

_TILES = frozenset({"channel_tile", "node_tile", "out_tile", "state_tile", "value_tile"})
"""Local names like those of vectors' tiles: which tile a program has, the state's, the output's."""

OWN, EARLIER = 0, 1
"""The two node blocks that a looped kernel holds at a time."""


@dataclass(frozen=True, slots=True)
class Context:
    """Plan, shapes and schedule of one kernel."""

    plan: Plan
    shapes: Shapes
    schedule: Schedule

    @property
    def dims(self) -> dict[str, int]:
        """Values of `d_k` and `d_v`."""
        return {"d_k": self.shapes.d_k, "d_v": self.shapes.d_v}

    @property
    def blocks(self) -> int:
        """Node blocks per request."""
        return blocks(self.schedule, self.shapes)

    @property
    def looped(self) -> bool:
        """Whether the blocks are walked by a loop of the kernel instead of being written out."""
        return looped(self.schedule, self.shapes)

    @property
    def walked(self) -> bool:
        """Whether products with decays in them come to the verify kernel from an earlier one."""
        return self.schedule.fusion == "walked"

    @property
    def prepares_first(self) -> bool:
        """Whether the first programs of the kernel that reads the state prepare for the others."""
        return self.schedule.prepare == "joined"

    @property
    def key_walks(self) -> bool:
        """Whether decays per key channel are multiplied along the paths, with the products of
        vectors that they stand in."""
        return self.plan.key_decay is not None and self.schedule.fusion != "fused"

    @property
    def shares_systems(self) -> bool:
        """Whether the value heads of a key head share one system, which is solved once for them.
        Where an earlier kernel has looked for values that are not finite, it differs by these."""
        if self.shapes.group == 1 or not self.schedule.folds:
            return False
        one_block = blocks(self.schedule, self.shapes) == 1
        return one_block and self.plan.is_per_key_head(self.scalars_needed)

    @property
    def systems(self) -> int:
        """Systems of a request that are solved."""
        return self.shapes.key_heads if self.shares_systems else self.shapes.value_heads

    @property
    def system_heads(self) -> str:
        """Name of the constant with that number."""
        return "KEY_HEADS" if self.shares_systems else "VALUE_HEADS"

    @property
    def tiles_per_system(self) -> int:
        """Value tiles that wait for the same system."""
        return self.shapes.value_heads // self.systems * self.value_tiles

    @property
    def system_head(self) -> str:
        """Name of the number of a system among those of a request."""
        return "key_head" if self.shares_systems else "head"

    @property
    def key_sums(self) -> bool:
        """Whether decays per key channel are differences of sums along the paths where those stay
        small, and vectors are put together before they read the state."""
        folds = self.schedule.folds and self.blocks == 1
        return self.plan.key_decay is not None and folds and self.schedule.path_sum == "dot"

    @property
    def spread_walks(self) -> bool:
        """Whether programs of the prepare kernel walk up the paths, each for a few nodes."""
        return self.key_walks and self.schedule.walk_nodes > 0

    @property
    def leaves_rows(self) -> bool:
        """Whether programs that walk leave finished rows of what is folded, for value tiles of the
        same launch: nothing is solved, so that a row depends on the path of its node alone."""
        first = self.prepares_first and self.schedule.folds
        return self.spread_walks and first and not self.plan.pairs

    @property
    def folds_readers(self) -> bool:
        """Whether one vector of each node and output stands for all that reads the state."""
        return self.schedule.readers == "folded"

    @property
    def walk_planes(self) -> tuple[str, ...]:
        """Planes of the row buffer that walks up the paths need or leave, behind the row scalars:
        the parent of each node; where another kernel than that of the walks looks for what is not
        finite, the sum of a node's decays."""
        from boleir.codegen.emit.key_vectors import is_sized, key_parameters

        if not self.key_walks or self.leaves_rows:
            return ()
        if self.spread_walks:
            left = self.walked or self.schedule.gates == "prepare"
            watched = left and (is_sized(self.plan) or key_parameters(self.plan))
            return ("gates_size",) if watched else ()
        return ("parent", "gates_size") if self.walked else ("parent",)

    @property
    def path_planes(self) -> tuple[str, ...]:
        """Planes of the row buffer with what belongs to log-decays per head: their sums along the
        path, and where a kernel takes a node's own off again or sums them up itself, those."""
        plan = self.plan
        if plan.log_decay is None:
            return ()
        times = [pair.after_decay for pair in plan.pairs]
        after = all(times + [readout.after_decay for readout in plan.readouts])
        kept = self.schedule.folds and self.schedule.gates == "inline"
        alone = self.schedule.fusion in ("staged", "walked") or kept or not after
        return ("c", "c_rest", "g") if alone else ("c", "c_rest")

    @property
    def dtype(self) -> str:
        """Triton's name of the vectors' format."""
        return DTYPES[self.shapes.dtype]

    @property
    def state_dtype(self) -> str:
        """Triton's name of the pool's format."""
        return DTYPES[self.shapes.state_dtype]

    @property
    def out_dtype(self) -> str:
        """Triton's name of the outputs' format."""
        return DTYPES[self.shapes.out_dtype or self.shapes.dtype]

    @property
    def keeps_unknowns(self) -> bool:
        """Whether verification stores the unknowns: for the commit, or for its own later blocks."""
        kept = self.schedule.fusion == "staged" or self.schedule.stores_unknowns
        return bool(self.plan.pairs) and (self.looped or kept)

    @property
    def unknown_dtype(self) -> str:
        """Triton's name of the format that they are stored in."""
        return "bf16" if self.schedule.commit == "factors16" else "fp32"

    @property
    def keeps_digits(self) -> bool:
        """Whether nodes see each other with all digits of a float32."""
        return keeps_digits(self.plan, self.shapes, self.schedule)

    @property
    def watches_values(self) -> bool:
        """Whether kernels look for non-finite value entries themselves: with inline gates no
        earlier kernel has."""
        return self.schedule.gates == "inline"

    @property
    def scalars_needed(self) -> tuple[Scalar, ...]:
        """Row scalars that the system of the tree needs; guards of value vectors only where they
        are already there, or where no kernel looks at the vectors themselves: it does at those
        that are written."""
        plan = self.plan
        if not self.watches_values:
            return plan.scalars
        read = [pair.gain for pair in plan.pairs if pair.gain is not None]
        seen = {x.key for x in walk(*read, *plan.written_values) if isinstance(x, Input)}
        return tuple(
            s
            for s in plan.scalars
            if s.watches is not Kind.VALUE or not any(x.key in seen for x in walk(s.expr))
        )

    @property
    def key_chunks(self) -> int:
        """Pieces in which the key dimension is walked."""
        return -(-self.shapes.d_k // self.schedule.b_k)

    @property
    def value_tiles(self) -> int:
        """Value tiles per head."""
        return -(-self.shapes.d_v // self.schedule.b_v)

    @property
    def inputs(self) -> set[str]:
        """Names that local variables leave to inputs."""
        plan = self.plan
        return {str(x.name) for x in (*plan.form.recurrence.inputs, *plan.tokens)}

    @property
    def reserved(self) -> set[str]:
        """Names that local variables leave to inputs and row scalars, and those of tiles that are
        there whatever the inputs are called."""
        return self.inputs | {s.name for s in self.plan.scalars} | _TILES

    def block(self, stem: str, number: int) -> str:
        """`stem` with the block it belongs to, where there are several."""
        if self.blocks == 1:
            return stem
        if self.looped:
            return stem if number == OWN else f"{stem}_earlier"
        return f"{stem}_{number}"

    def pair(self, stem: str, b: int, a: int) -> str:
        """`stem` with the two blocks it couples, where there are several."""
        if b == a or self.looped:
            return self.block(stem, a)
        return f"{stem}_{b}_{a}"

    def first_node(self, number: int) -> str:
        """First node of a block, as text."""
        if self.looped:
            return f"{'block' if number == OWN else 'earlier'} * NODE_BLOCK"
        return str(number * self.schedule.node_block)


@dataclass(frozen=True, slots=True)
class BlockContext(Context):
    """The same for a kernel whose programs take one node block each, whichever it is."""

    @property
    def blocks(self) -> int:
        """One: names need not tell blocks apart."""
        return 1

    @property
    def looped(self) -> bool:
        """No program walks blocks."""
        return False

    def first_node(self, number: int) -> str:
        """First node of the program's block, as text."""
        return "block * NODE_BLOCK" if blocks(self.schedule, self.shapes) > 1 else "0"


def plane_of(index: int, head: str) -> str:
    """Row of `rows`, [planes * heads, capacity], that holds plane `index` of a head, as an atom."""
    if index == 0:
        return bracket(head)
    return f"({f'{index} * ' if index > 1 else ''}VALUE_HEADS + {head})"


def unknown_place(form: NormalForm, p: int) -> Span | None:
    """Where the unknown of pair `p` was written: at the statement that reads the state for it."""
    reads = [node for node in walk(form.recurrence.update) if isinstance(node, Read | ReadKey)]
    if len(reads) == len(form.pairs):
        return place(reads[p])
    return place(form.pairs[p].target, form.pairs[p].erase.vector)


def place(*exprs: Expr | None) -> Span | None:
    """Where the outermost part of the first expression with a known place was written."""
    return next((span for expr in exprs if expr is not None for span in _spans(expr)), None)


def _spans(expr: Expr) -> Iterator[Span]:
    queue, seen = [expr], {expr.key}
    for node in queue:
        if node.span is not None:
            yield node.span
        fresh = [child for child in node.children if child.key not in seen]
        seen |= {child.key for child in fresh}
        queue += fresh
