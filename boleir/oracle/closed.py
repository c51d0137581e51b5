"""The theorem, evaluated: G, C, R, the finite series for (I + G)^-1, outputs and commits.

Everything is written for the left-acting form on [heads, W, U] states (W the side that is written
along, U the side of the unknowns); a right-acting form works on the transposed state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from boleir.derive.closed_form import Block, ClosedForm, Gates, Mask
from boleir.ir import Expr, Kind
from boleir.oracle.values import Array, Exact, Field, Floats, Inputs, Values

PAIRS_AT_ONCE = 4096
"""(i, j) pairs whose vectors are held at the same time."""


@dataclass(frozen=True, slots=True)
class Solution:
    """Outputs [T, HV, d_v], and what is needed to commit any node."""

    output: Array
    unknowns: tuple[Array, ...]
    """U: one [T, HV, d] array per pair."""
    _system: _System

    def commit(self, node: int) -> Array:
        """The state after accepting the root path of `node`, [HV, d_k, d_v]; -1: the old state."""
        return self._system.commit(node, self.unknowns)


def closed_form(
    form: ClosedForm,
    inputs: Inputs,
    parents: Sequence[int],
    state: Array,
    *,
    weights: Inputs | None = None,
    windows: Inputs | None = None,
    field: Field | None = None,
    solver: str = "series",
) -> Solution:
    """All outputs from the committed `state` [HV, d_k, d_v].

    `solver`: "series" sums the finite Neumann series to the nilpotency index of the form;
    "substitution" solves row by row and does not rely on it.
    """
    system = _System(form, inputs, parents, state, weights, windows, field or Floats())
    unknowns = system.solve(solver)
    return Solution(system.output(unknowns), unknowns, system)


class _System:
    """The matrices of one request."""

    def __init__(
        self,
        form: ClosedForm,
        inputs: Inputs,
        parents: Sequence[int],
        state: Array,
        weights: Inputs | None,
        windows: Inputs | None,
        field: Field,
    ) -> None:
        self.form = form
        self.right = form.normal.side == "right"
        self.write, self.unknown = Kind.KEY, Kind.VALUE
        start = field.array(state)
        self.heads, d_k, d_v = start.shape
        if self.right:
            self.write, self.unknown = self.unknown, self.write
            start = start.transpose(0, 2, 1)
        self.start = start
        self.parents = [int(p) for p in parents]
        self.values = Values(
            inputs, parents, (d_k, d_v), weights=weights, windows=windows, field=field
        )
        self.exact = isinstance(field, Exact)
        self.decay_kind = form.P.decay.kind
        self.decay = None if form.P.trivial else self._path_decay()
        self._masks: dict[Mask, list[tuple[int, int]]] = {}

    # Decays: `own` per node and `path` along the root path, as logarithms or exactly as factors.

    def _path_decay(self) -> tuple[Array, Array]:
        expr = self.form.P.decay if self.exact else self.form.P.log_decay
        own = np.array(self.values.full(expr, self.decay_kind, self.heads))
        path = own.copy()
        for node, parent in enumerate(self.parents):
            if parent >= 0:
                path[node] = path[parent] * own[node] if self.exact else path[parent] + own[node]
        return own, path

    def _gate(self, gates: Gates, rows: list[int], columns: list[int]) -> Array | None:
        """Γ for the pairs (rows[n], columns[n]), [n, heads, d or 1]; column -1 is S_pre."""
        if self.decay is None:
            return None
        own, path = self.decay
        above = [self.parents[i] for i in rows]
        own_i = own[rows]
        start = self._rows(own, columns)
        to, since = self._rows(path, above), self._rows(path, columns)
        if self.exact:
            return own_i**gates.own * (to / since) ** gates.between * start**gates.start
        exponent = gates.own * own_i + gates.between * (to - since) + gates.start * start
        return np.exp(exponent)

    def _rows(self, table: Array, nodes: list[int]) -> Array:
        """Rows of a table; the neutral element for node -1."""
        result = table[nodes]
        result[np.array(nodes) < 0] = self._neutral()
        return result

    def _neutral(self) -> object:
        return self.values.field.number(_ONE) if self.exact else 0.0

    # Matrices.

    def entries(self, mask: Mask) -> list[tuple[int, int]]:
        """The pairs (i, j), j < i, that a mask admits."""
        if mask not in self._masks:
            nodes = range(len(self.parents))
            if mask is Mask.ANCESTORS:
                pairs = [(i, j) for i in nodes for j in self._ancestors(i)]
            elif mask is Mask.SIBLINGS:
                pairs = [(i, j) for i in nodes for j in range(i) if self._same_parent(i, j)]
            else:
                pairs = [(i, j) for i in nodes for j in range(i)]
            self._masks[mask] = pairs
        return self._masks[mask]

    def _same_parent(self, i: int, j: int) -> bool:
        return self.parents[i] == self.parents[j]

    def _ancestors(self, node: int) -> list[int]:
        found = []
        node = self.parents[node]
        while node >= 0:
            found.append(node)
            node = self.parents[node]
        return found[::-1]

    def matrix(self, block: Block, *, own: bool = True) -> Array:
        """[heads, T, T] of a block, or [heads, T, T, d] when the decay is per unknown channel."""
        left = self._vector(block.left, self.write)
        right = self._vector(block.right, self.write)
        count = len(self.parents)
        pairs = self.entries(block.mask)
        deep = self.decay is not None and self.decay_kind is self.unknown
        shape = (self.heads, count, count) + ((self.start.shape[2],) if deep else ())
        result = self._zeros(shape)
        gram = None
        if self.decay is None or self.decay_kind is not self.write:
            gram = np.swapaxes(left, 0, 1) @ right.transpose(1, 2, 0)
        for first in range(0, len(pairs), PAIRS_AT_ONCE):
            rows, columns = (
                list(x) for x in zip(*pairs[first : first + PAIRS_AT_ONCE], strict=True)
            )
            gate = self._gate(block.gates, rows, columns)
            if gram is None:
                assert gate is not None
                values = (left[rows] * (gate * right[columns])).sum(axis=-1)
            else:
                values = np.swapaxes(gram[:, rows, columns], 0, 1)
                if gate is not None:
                    values = values[..., None] * gate if deep else values * gate[..., 0]
            result[:, rows, columns] = np.swapaxes(values, 0, 1)
        if own:
            diagonal = self.values.full(block.own, Kind.HEAD, self.heads)
            diagonal = np.swapaxes(diagonal, 0, 1)
            result[:, range(count), range(count)] = diagonal if deep else diagonal[..., 0]
        return result

    def _apply(self, matrix: Array, columns: Array) -> Array:
        """matrix times [T, heads, U] over nodes."""
        flat = np.swapaxes(columns, 0, 1)
        if matrix.ndim == 4:
            return np.swapaxes((matrix * flat[:, None]).sum(axis=2), 0, 1)
        return np.swapaxes(matrix @ flat, 0, 1)

    def _base(self, vector: Expr, gates: Gates) -> Array:
        """(Γ_i∅ ∘ vector_i)^T S_pre for all nodes, [T, heads, U]."""
        nodes = list(range(len(self.parents)))
        rows = self._vector(vector, self.write)
        gate = self._gate(gates, nodes, [-1] * len(nodes))
        if gate is None or self.decay_kind is self.unknown:
            read = np.swapaxes(np.swapaxes(rows, 0, 1) @ self.start, 0, 1)
            return read if gate is None else read * gate
        return np.swapaxes(np.swapaxes(rows * gate, 0, 1) @ self.start, 0, 1)

    def _vector(self, expr: Expr, kind: Kind) -> Array:
        return self.values.full(expr, kind, self.heads)

    def _zeros(self, shape: tuple[int, ...]) -> Array:
        return self.values.field.array(np.zeros(shape, dtype=int))

    # The system and what follows from its solution.

    def right_sides(self) -> list[Array]:
        """R, one [T, heads, U] array per pair."""
        result = []
        for side in self.form.R:
            read = self._base(side.erase.vector, side.gates)
            for block, value in zip(side.writes, self._write_values(), strict=True):
                read = read + self._apply(self.matrix(block), value)
            if side.gain is not None:
                read = read * self._vector(side.gain, self.unknown)
            result.append(self._vector(side.target, self.unknown) - read)
        return result

    def _write_values(self) -> list[Array]:
        return [self._vector(value, self.unknown) for _, value in self.form.commit.writes]

    def solve(self, solver: str) -> tuple[Array, ...]:
        """U, one [T, heads, U] array per pair."""
        right = self.right_sides()
        if not right:
            return ()
        matrices = [[self.matrix(block, own=False) for block in row] for row in self.form.G]
        if solver == "substitution":
            return self._substitute(matrices, right)
        if solver != "series":
            raise ValueError(f"unknown solver '{solver}': use 'series' or 'substitution'")
        solution = list(right)
        for _ in range(self.form.nilpotency_index(self._depth()) - 1):
            solution = [
                target - self._row(a, matrices[a], solution) for a, target in enumerate(right)
            ]
        return tuple(solution)

    def _row(self, a: int, matrices: list[Array], solution: list[Array]) -> Array:
        """Row a of G U."""
        read = self._zeros(solution[0].shape)
        own = self._zeros(solution[0].shape)
        for b, matrix in enumerate(matrices):
            read = read + self._apply(matrix, solution[b])
            own = own + self._vector(self.form.G[a][b].own, Kind.HEAD) * solution[b]
        gain = self.form.R[a].gain
        return own + (read if gain is None else read * self._vector(gain, self.unknown))

    def _substitute(self, matrices: list[list[Array]], right: list[Array]) -> tuple[Array, ...]:
        solution = [self._zeros(target.shape) for target in right]
        gains = [
            None if s.gain is None else self._vector(s.gain, self.unknown) for s in self.form.R
        ]
        for node in range(len(self.parents)):
            for a, target in enumerate(right):
                read = self._zeros(target.shape[1:])
                own = self._zeros(target.shape[1:])
                for b, matrix in enumerate(matrices[a]):
                    row = matrix[:, node, :node]
                    before = np.swapaxes(solution[b][:node], 0, 1)
                    product = row * before if row.ndim == 3 else row[..., None] * before
                    read = read + product.sum(axis=1)
                    coupling = self._vector(self.form.G[a][b].own, Kind.HEAD)[node]
                    own = own + coupling * solution[b][node]
                gain = gains[a]
                solution[a][node] = (
                    target[node] - own - (read if gain is None else read * gain[node])
                )
        return tuple(solution)

    def _depth(self) -> int:
        return max((len(self._ancestors(i)) for i in range(len(self.parents))), default=0)

    def output(self, unknowns: tuple[Array, ...]) -> Array:
        """O, [T, HV, d_v]."""
        out = self.form.C
        if self.right:
            result = self._cross_output(unknowns)
        else:
            result = self._base(out.query.vector, out.gates)
            columns = [*unknowns, *self._write_values()]
            for block, column in zip(out.pairs + out.writes, columns, strict=True):
                result = result + self._apply(self.matrix(block), column)
        if out.gain is not None:
            result = result * self._vector(out.gain, Kind.VALUE)
        return result if out.direct is None else result + self._vector(out.direct, Kind.VALUE)

    def _cross_output(self, unknowns: tuple[Array, ...]) -> Array:
        """Right acting: o_i = Γ_i∅ ∘ (S_pre^T q_i) + sum_j (q_i^T u_j) Γ_ij ∘ w_j; a gate over keys
        stays inside the products with q_i."""
        out = self.form.C
        query = self._vector(out.query.vector, self.unknown)
        nodes = list(range(len(self.parents)))
        gate = self._gate(out.gates, nodes, [-1] * len(nodes))
        inside = gate is not None and self.decay_kind is self.unknown
        read = np.swapaxes(query * gate if inside else query, 0, 1)
        result = np.swapaxes(read @ self.start.transpose(0, 2, 1), 0, 1)
        result = result if gate is None or inside else result * gate
        columns = [*unknowns, *self._write_values()]
        for block, column in zip(out.pairs + out.writes, columns, strict=True):
            result = result + self._cross_block(block, query, column)
        return result

    def _cross_block(self, block: Block, query: Array, column: Array) -> Array:
        written = self._vector(block.right, self.write)
        share = self.values.full(block.own, Kind.HEAD, self.heads)
        result = (query * column).sum(axis=-1, keepdims=True) * share * written
        for i, j in self.entries(block.mask):
            gate = self._gate(block.gates, [i], [j])
            left, vector = query[i], written[j]
            if gate is not None and self.decay_kind is self.unknown:
                left = left * gate[0]
            elif gate is not None:
                vector = vector * gate[0]
            result[i] = result[i] + (left * column[j]).sum(axis=-1, keepdims=True) * vector
        return result

    def commit(self, node: int, unknowns: tuple[Array, ...]) -> Array:
        """The state after the root path of `node`."""
        if node < 0:
            state = self.start
        else:
            gates = self.form.commit.gates
            state = self._decayed(self.start, Gates(own=1), node, -1)
            path = [*self._ancestors(node), node]
            writes = [expr for expr, _ in self.form.commit.writes]
            columns = [*unknowns, *self._write_values()]
            for expr, column in zip([*self.form.commit.pairs, *writes], columns, strict=True):
                vectors = self._vector(expr, self.write)
                for j in path:
                    rank_one = vectors[j][:, :, None] * column[j][:, None, :]
                    state = state + (
                        rank_one if j == node else self._decayed(rank_one, gates, node, j)
                    )
        return state.transpose(0, 2, 1) if self.right else state

    def _decayed(self, state: Array, gates: Gates, node: int, since: int) -> Array:
        gate = self._gate(gates, [node], [since])
        if gate is None:
            return state
        return state * (
            gate[0][:, None, :] if self.decay_kind is self.unknown else gate[0][:, :, None]
        )


_ONE = Fraction(1)
