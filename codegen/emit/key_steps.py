"""Steps over the key channels of a head whose decays are sums along the paths.

A step takes as many channels as there are registers for. Sums by warp groups have many columns;
products of all nodes leave room for few (see `boleir.codegen.emit.key_sums`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from boleir.codegen.emit.key_vectors import readers, written_bases
from boleir.codegen.emit.key_walks import PathTiles
from boleir.codegen.schedule import padded
from boleir.ir import Kind

STEP, SUMS = -2, -3
"""Numbers of the key chunks of a step that multiplies vectors, and of one that sums up
log-decays."""
STEP_ENTRIES = 16
"""Entries of a key tile that a thread holds during a step: twice as many, where there is but one
vector of a kind."""
GROUP_COLUMNS = 64
"""Channels of a sum that each warp group takes: products with fewer columns are compiled wrongly
for sm_90."""


class StepTiles(PathTiles):
    """Tiles of a step's channels."""

    @property
    def step_width(self) -> int:
        """Key channels that vectors take at a time: few, since several tiles live through it."""
        schedule, d_k = self.context.schedule, padded(self.context.shapes.d_k)
        plan = self.context.plan
        alone = len(readers(plan)) == 1 and len(written_bases(plan)) == 1
        entries = STEP_ENTRIES * (2 if alone and schedule.factor_warps <= 4 else 1)
        per_warp = 32 * entries // schedule.node_block
        return min(d_k, max(16, per_warp * schedule.factor_warps))

    @property
    def sums_width(self) -> int:
        """Key channels that are summed up at a time."""
        schedule, d_k = self.context.schedule, padded(self.context.shapes.d_k)
        groups = schedule.factor_warps // 4 if schedule.node_block >= 64 else 0
        return min(d_k, max(GROUP_COLUMNS * groups, self.step_width))

    @property
    def together(self) -> bool:
        """Whether a step sums up and multiplies. Otherwise sums wait in memory: with the products
        of all nodes next to it, a step of many channels has no registers left."""
        return self.sums_width == self.step_width

    @property
    def walk_width(self) -> int:
        """As few as possible for the walks of the rest, next to which the products are kept."""
        return 16

    def key_name(self, chunk: int) -> str:
        """Name of the channel numbers of a key chunk."""
        if chunk == SUMS and not self.together:
            return "key_sums"
        return "key_step" if chunk in (SUMS, STEP) else super().key_name(chunk)

    def key_part(self, chunk: int) -> str:
        """What names of key tiles end in."""
        return "" if chunk in (SUMS, STEP) else super().key_part(chunk)

    def is_partial(self, chunk: int) -> bool:
        """Whether a key chunk reaches beyond the last channel."""
        if chunk in (SUMS, STEP):
            width = self.sums_width if chunk == SUMS else self.step_width
            return self.context.shapes.d_k % width != 0
        return super().is_partial(chunk)

    @contextmanager
    def steps(self, chunk: int, width: int) -> Iterator[None]:
        """The lines of the block once per step, in a loop where there are several: code that is
        written out is executed no faster than it is fetched."""
        w, channels = self.writer, f"tl.arange(0, {width})"
        count = -(-self.context.shapes.d_k // width)
        if count == 1:
            w.let(self.key_name(chunk), channels)
            yield
            return
        stages = min(self.context.schedule.factor_stages, count + 1)
        ahead = f"tl.range(0, {count}, num_stages={stages})" if stages > 1 else f"range(0, {count})"
        with w.block(f"for step in {ahead}:"):
            w.let(self.key_name(chunk), f"step * {width} + {channels}")
            yield

    @contextmanager
    def apart(self, width: int) -> Iterator[None]:
        """The lines of the block in a block of the program, as those of a loop over steps are."""
        if self.context.shapes.d_k > width:
            yield
            return
        self.writer.comment("always: Triton 3.6 fails for sm_100 where rows of a sum are reduced")
        with self.writer.block("if count >= 0:"):
            yield

    def prefetch(self, kinds: frozenset[Kind]) -> None:
        """Key vectors are loaded step by step."""
        super().prefetch(kinds - {Kind.KEY})

    def prefetch_rows(self, b: int) -> None:
        """Nothing: row scalars are loaded behind the steps, through which they take registers."""
