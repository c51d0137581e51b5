"""Decays per key channel summed along the paths by the prepare kernel, one head per program.

Sums need half of the registers that the products of all nodes take, so that twice as many programs
share a multiprocessor: apart from each other, both wait less. Left for the factors kernel are the
sums, products of vectors of the same node, which nodes walk, and what their walks give (see
`boleir.codegen.emit.key_sums`). Row scalars come along: most reduce the same vectors.
"""

from __future__ import annotations

from dataclasses import replace

from boleir.codegen.emit.context import LARGEST, Context
from boleir.codegen.emit.frame import DECODE
from boleir.codegen.emit.key_far import find_far, walk_far
from boleir.codegen.emit.key_steps import SUMS
from boleir.codegen.emit.key_sums import SumTiles
from boleir.codegen.emit.key_vectors import decay_vectors, key_sums_of
from boleir.codegen.emit.signals import announce_prepared
from boleir.codegen.emit.text import conjunction
from boleir.codegen.emit.tiles import is_finite
from boleir.codegen.emit.writer import EmittedKernel, Writer
from boleir.codegen.plan import Scalar
from boleir.ir import Input, Kind, walk

REGISTERS = 128
"""Registers per thread: four programs of four warps share a multiprocessor, so that those of 16
requests with 32 heads run at the same time."""


def emit_prepared_sums(context: Context, *, pdl: bool) -> EmittedKernel:
    """One program per request and value head: sums along the paths, all row scalars."""
    w = Writer(context.reserved)
    warps = max(4, context.schedule.factor_warps)
    schedule = replace(context.schedule, orientation="nodes", factor_warps=warps)
    tiles = PreparedSums(replace(context, schedule=schedule), w)
    if context.prepares_first:
        w.arg("program", "i32")
    else:
        w.let("program", "tl.program_id(0)")
    if pdl:
        w.line("tl.extra.cuda.gdc_wait()")
        w.comment("after the wait: a kernel that starts early knows that all before this is done")
        w.line("tl.extra.cuda.gdc_launch_dependents()")
    tiles.request(DECODE)
    tiles.node_block(0)
    tiles.emit()
    if context.prepares_first:
        announce_prepared(w)
    return w.kernel(
        "prepare",
        "Before the tree is solved: norms, gates and their sums along the paths.",
        (f"{context.shapes.value_heads} * batch", "1", "1"),
        warps=warps,
        pdl=pdl,
        registers=REGISTERS,
    )


class PreparedSums(SumTiles):
    """Tiles of such a program, which nothing has been prepared for."""

    watches_together = False

    def __init__(self, context: Context, writer: Writer) -> None:
        super().__init__(context, writer)
        self.rows_ready = False

    def emit(self) -> None:
        """Sums, row scalars, then walks of the nodes whose sums leave their bounds."""
        plan = self.context.plan
        self.ancestors(0, 0)
        self.prefetch(frozenset({Kind.HEAD}))
        plain = [scalar for scalar in plan.scalars if not key_sums_of(scalar.expr)]
        self._store_scalars(plain)
        self.begin_totals(0)
        sized = self.begin_sums()
        with self.steps(SUMS, self.sums_width):
            self.load_keys(SUMS, self.vectors())
            self.reduce(SUMS)
            self.sums(SUMS)
            self.leave_sums()
        self.forget_ancestors()
        self._store_scalars([scalar for scalar in plan.scalars if scalar not in plain])
        self._leave_walks(sized)

    def _store_scalars(self, scalars: list[Scalar]) -> None:
        """Some of the row scalars, as the factors kernel looks for them."""
        for scalar in scalars:
            name = self.row_scalar(scalar, 0)
            head = "key_head" if scalar.per_key_head else "head"
            index = self.context.plan.scalars.index(scalar)
            at = self.plane_at(index, scalar.name, head, 0)
            self.writer.line(f"tl.store({at}, {name}, mask=inside)")

    def _leave_walks(self, sized: list[str]) -> None:
        """Rows about the walks, then these."""
        w = self.writer
        find_far(self)
        planes = {"far": "tl.where(far, 1.0, 0.0)"}
        planes |= {f"own_{number}": name for number, name in enumerate(self.own.values())}
        planes |= {name: name for name in sized}
        for plane, value in planes.items():
            w.line(f"tl.store({self.walk_plane_at(plane, 0)}, {value}, mask=inside)")
        with w.block("if leaving != 0:"):
            w.let("finite", conjunction(*(self._decay_tests(sized) or ["node >= 0"])))
            walk_far(self)

    def _decay_tests(self, sized: list[str]) -> list[str]:
        """Whether all that decays are computed from is finite; `sized` rows tell of decays."""
        plan = self.context.plan
        needed = {x.key for x in walk(*decay_vectors(plan)) if isinstance(x, Input)}
        tests = [f"tl.abs({name}) < {LARGEST}" for name in sized]
        for scalar in plan.scalars:
            if needed & {x.key for x in walk(scalar.expr) if isinstance(x, Input)}:
                tests.append(is_finite(scalar, self.row_scalar(scalar, 0)))
        return tests
