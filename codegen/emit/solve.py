"""Solving the nilpotent system of one node block: sweeps, levels, or an inverse of the block."""

from __future__ import annotations

from boleir.codegen.emit.inverses import inverse, product_form
from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.system import System
from boleir.codegen.emit.text import product
from boleir.codegen.topology_facts import sweeps_of_block


class Solver:
    """Emits U from R and the tiles of -G of one block."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.tiles = system.tiles
        self.context = system.context
        self.precision = system.precision
        self.writer = system.writer

    def solve(self, b: int, right: list[str], minus_g: dict[tuple[int, int], str]) -> list[str]:
        """Names of the unknowns of each pair, given right sides and tiles of -G by pair and
        pair."""
        sweeps, solver = sweeps_of_block(self.context, b), self.context.schedule.solver
        if not minus_g or not (sweeps or (solver == "levels" and self._in_turn)):
            return right
        for pair in self.context.plan.pairs:
            if pair.gain is not None:
                self.tiles.finite_value(pair.gain, b)
        if solver == "horner":
            return self._sweep(b, right, minus_g, sweeps)
        if solver == "levels":
            return self._levels(b, right, minus_g, sweeps)
        build = inverse if solver == "inverse" else product_form
        name = self.context.block("inverse", b)
        pieces = self.system.pieces(build(self.system, name, b, minus_g[0, 0], sweeps))
        unknown = self.context.block("u", b)
        known = self.system.pieces(right[0])
        return [self.system.apply(unknown, known, pieces, None)]

    @property
    def _in_turn(self) -> bool:
        """Whether a token has several steps, each of which sees those before it."""
        return self.context.plan.form.micro_steps > 1

    def _sweep(
        self, b: int, right: list[str], minus_g: dict[tuple[int, int], str], sweeps: int
    ) -> list[str]:
        """Horner's rule for the finite series: U <- R - G U, from U = R."""
        w, c = self.writer, self.context
        tiles = {at: self.system.pieces(tile) for at, tile in minus_g.items()}
        names = [c.block(f"u{p or ''}", b) for p in range(len(right))]
        now = right
        rolled = self.system.is_rolled(sweeps, len(tiles))
        if rolled:
            now = [w.let(name, start) for name, start in zip(names, right, strict=True)]
        for _ in self.system.repeat(sweeps, len(tiles)):
            pieces = [self.system.pieces(name) for name in now]
            # with several pairs, none may see what another one has become in the same sweep
            results = names if len(names) == 1 else [f"{name}_next" for name in names]
            for p, result in enumerate(results):
                self._swept(result, p, b, right, pieces, tiles)
            now = [w.let(name, result) for name, result in zip(names, results, strict=True)]
        return names

    def _swept(
        self, name: str, p: int, b: int, right: list[str], pieces: list[Pieces],
        tiles: dict[tuple[int, int], Pieces],
    ) -> str:  # fmt: skip
        """R - G U for one pair."""
        gain = self.context.plan.pairs[p].gain
        total = right[p] if gain is None else None
        for q, unknown in enumerate(pieces):
            if (p, q) in tiles:  # none for pairs that write nothing
                total = self.system.apply(name, unknown, tiles[p, q], total)
        if gain is not None:
            seen = product(self.tiles.finite_value(gain, b), name)
            self.writer.let(name, f"{right[p]} + {seen}")
        return name

    def _levels(
        self, b: int, right: list[str], minus_g: dict[tuple[int, int], str], sweeps: int
    ) -> list[str]:
        """Substitution, one level of the tree at a time, and the steps of a token one after the
        other: what is not known yet is zero, not what a series has come to so far."""
        w, c, t = self.writer, self.context, self.tiles
        in_turn = self._in_turn
        tiles = {at: self.system.pieces(tile) for at, tile in minus_g.items()}
        depth, node = c.block("depth", b), c.block("node", b)
        at = f"{w.arg('depths', '*i32')} + first + {node}"
        w.let(depth, f"tl.load({at}, mask={c.block('inside', b)}, other=-1)")
        names = [c.block(f"u{p or ''}", b) for p in range(len(right))]
        for name, start in zip(names, right, strict=True):
            w.let(name, f"tl.where({t.across(depth)} == 0, {start}, 0.0)")
        for p, name in enumerate(names[1:] if in_turn else [], 1):
            pieces = [self.system.pieces(name) for name in names]
            swept = self._swept(f"{name}_swept", p, b, right, pieces, tiles)
            w.let(name, f"tl.where({t.across(depth)} == 0, {swept}, 0.0)")
        for level in self.system.repeat(sweeps, len(tiles), "level"):
            pieces = [self.system.pieces(name) for name in names]
            for p, name in enumerate(names):
                swept = self._swept(f"{name}_swept", p, b, right, pieces, tiles)
                w.let(name, f"tl.where({t.across(depth)} == {level}, {swept}, {name})")
                if in_turn and p + 1 < len(names):
                    pieces[p] = self.system.pieces(name)
        return names
