"""The closed form of a recurrence over a proposal tree: P, G, C, R and the commit, as plain data.

Notation: node i with parent p, strict ancestors j ≺ i, S_pre the committed state, D_i the decay of
node i, c_i the sum of log decays on the root path of i, itself included. With the pairs a and the
pure writes b of `NormalForm`:

    S_p          = P_p ∘ S_pre + sum_{j ≺ i} (Γ_pj ∘ w_ja) u_ja^T + (Γ_pj ∘ κ_jb) ν_jb^T
    (I + G) U    = R         G[(i,a),(j,b)] = e_ia^T (Γ ∘ w_jb),   R = r - e^T S_p without the u_j
    o_i          = q_i^T S_p + sum_a α_ia u_ia + y_i               a row of C U, and what has no u_j
    S after l    = Γ_l∅ ∘ S_pre + sum_{j ≼ l} (Γ_lj ∘ w_ja) u_ja^T + (Γ_lj ∘ κ_jb) ν_jb^T

Which decays a factor Γ counts is data (`Gates`), so that the checker can break a form on purpose
and see it fail."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from boleir.derive.normal_form import NormalForm, Reading
from boleir.ir import Expr, Recurrence

if TYPE_CHECKING:
    from collections.abc import Sequence


class Mask(StrEnum):
    """Which nodes j a row of node i sees besides itself. Only the first is ever derived."""

    ANCESTORS = "strict ancestors"
    SIBLINGS = "earlier siblings"
    EARLIER = "all earlier nodes"


@dataclass(frozen=True, slots=True)
class Gates:
    """How often the factor from j to i counts a decay: that of i (`own`), each one strictly between
    (`between`), and that of j (`start`): exp(own log D_i + between (c_p - c_j) + start log D_j)."""

    own: int
    between: int = 1
    start: int = 0


@dataclass(frozen=True, slots=True)
class Block:
    """A matrix over nodes: entry (i, j) = left_i^T (Γ_ij ∘ right_j) where `mask` says, `own` at i =
    j.

    Right acting, in C: left_i^T u_j in place of the scalar product with `right`, which then is the
    vector that the entry scales.
    """

    left: Expr
    right: Expr
    gates: Gates
    own: Expr
    """HEAD scalar at i = j; the constant 0 in a strictly lower triangular block."""
    mask: Mask = Mask.ANCESTORS


@dataclass(frozen=True, slots=True)
class RightSide:
    """R_i = target_i - gain_i * ((P ∘ erase_i)^T S_pre + sum over `writes` of entry(i, j) ν_j)."""

    target: Expr
    erase: Reading
    gates: Gates
    """Decays in front of S_pre (`start` has no meaning here)."""
    writes: tuple[Block, ...]
    gain: Expr | None


@dataclass(frozen=True, slots=True)
class Output:
    """o_i = gain_i * ((P ∘ query_i)^T S_pre + C U + sum over `writes` of entry ν_j) + direct_i."""

    query: Reading
    gates: Gates
    pairs: tuple[Block, ...]
    """C: one block per pair."""
    writes: tuple[Block, ...]
    gain: Expr | None
    direct: Expr | None


@dataclass(frozen=True, slots=True)
class Commit:
    """S_new = P_l ∘ S_pre + sum_{j ≼ l} (Γ_lj ∘ w_j) u_j^T + (Γ_lj ∘ κ_j) ν_j^T at the accepted
    node l.

    `gates` counts the decays of the sums (own = 1: those below j, l included).
    """

    gates: Gates
    pairs: tuple[Expr, ...]
    writes: tuple[tuple[Expr, Expr], ...]


@dataclass(frozen=True, slots=True)
class PathDecay:
    """P_i = product of the decay over the root path of i, itself included; P_∅ = 1."""

    decay: Expr
    log_decay: Expr
    trivial: bool
    """Whether the decay is the number 1."""


@dataclass(frozen=True, slots=True)
class Nilpotency:
    """G^n = 0 for n = per_level * (depth + 1) + extra; `extra` is 0 in every derived form."""

    per_level: int
    extra: int = 0

    def index(self, depth: int) -> int:
        """The n for trees of at most `depth` edges below the roots."""
        return max(0, self.per_level * (depth + 1) + self.extra)


class Class(StrEnum):
    """What kind of work the closed form is; a form may belong to several classes."""

    NO_SOLVE = "no solve: G = 0"
    SOLVE = "solve: G is strictly lower triangular"
    UNGATED = "no decay"
    SCALAR_GATE = "scalar gate: the gate factors out of the Gram matrices and of (I + G)^-1"
    KEY_GATE = "channel gate on the written side: the gate stays inside the scalar products"
    VALUE_GATE = "channel gate on the unknown side: one system per channel, no shared inverse"
    VALUE_GAIN = "vector gain on the unknowns: one system per channel, no shared inverse"
    RIGHT = "right acting: the unknowns are key vectors, and C depends on the solution"
    WATCHED = "several gains in the output: it has pairs of its own, which write nothing"
    MICRO_STEPS = "micro-steps: the pairs of one token act one after the other"


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The theorem for one recurrence. Printable: `str(form)` is the text of `explain()`."""

    normal: NormalForm
    P: PathDecay
    G: tuple[tuple[Block, ...], ...]
    """G[a][b]: how pair a of a node reads pair b of its ancestors; `own` is the coupling."""
    C: Output
    R: tuple[RightSide, ...]
    """One right-hand side per pair."""
    commit: Commit
    nilpotency: Nilpotency
    more: tuple[ClosedForm, ...] = ()
    """The closed forms of the further outputs: the same P, G, R and commit, another C."""

    @property
    def name(self) -> str:
        """Name of the recurrence."""
        return self.recurrence.name

    @property
    def recurrence(self) -> Recurrence:
        """Where the form was derived from."""
        return self.normal.recurrence

    def nilpotency_index(self, depth: int) -> int:
        """Smallest n the derivation promises with G^n = 0 for trees of `depth` edges; 0 when G = 0
        has no rows at all."""
        return self.nilpotency.index(depth)

    @property
    def classes(self) -> tuple[Class, ...]:
        """What kind of work this is."""
        from boleir.derive.structure import classify

        return classify(self.normal)

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What the derivation takes for granted about the inputs: decays whose sign it cannot
        know."""
        from boleir.derive.structure import assumptions

        return assumptions(self.normal)

    def explain(self, fmt: str = "text", tree: Sequence[int] | None = None) -> str:
        """Lemmas 1 to 3, the theorem and the commit for this recurrence in its own symbols.

        `fmt` is "text" or "latex". With `tree` (parents, -1 for roots, or a `Tree`): the tree, G, C
        and (I + G)^-1 entry by entry.
        """
        from boleir.derive.explain import explain

        return explain(self, fmt, tree)

    def __str__(self) -> str:
        return self.explain()
