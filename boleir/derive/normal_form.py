"""The normal form: what a recurrence looks like once the state has been separated from everything
else.

One token, left acting:

    S_i = D_i * S_p + sum_a w_a u_a^T + sum_b kappa_b nu_b^T
    u_a = r_a - g_a * (e_a^T S_p) - sum_{b<a} m_ab u_b            (a: erase/write pairs)
    o_i = qhat^T S_p + sum_a alpha_a u_a + y                      (y free of the state and of u)

with D the decay of the token, e_a read either before the decay or after it (`after_decay`: ehat = D
* e), g_a one or a value vector, m the coupling between the pairs of one token (non-zero for
micro-steps). Every field is an IR expression without `Previous`, so that it can be printed,
evaluated and compiled.

For a right-acting recurrence (side = "right") the roles of keys and values are exchanged: the form
describes S^T."""

from __future__ import annotations

from dataclasses import dataclass

from boleir.ir import Expr, Recurrence


@dataclass(frozen=True, slots=True)
class Reading:
    """A vector that reads the parent's state: before the decay, or after it (then the decay
    multiplies it)."""

    vector: Expr
    after_decay: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """One erase/write pair: unknown u = target - gain * (erase^T S_p) - sum_b coupling[b] u_b,
    written along `write`."""

    write: Expr
    """w, a KEY vector, all later decays of the same token included. The constant 0 where only the
    output sees the unknown: such pairs come last."""
    erase: Reading
    target: Expr
    """r, a VALUE vector (the constant 0 when the pair only erases)."""
    coupling: tuple[Expr, ...]
    """One HEAD scalar for each earlier pair of the token; all zero for simultaneous writes."""
    gain: Expr | None = None
    """A VALUE vector that scales the erased part, or None for one."""


@dataclass(frozen=True, slots=True)
class Write:
    """A pure write kappa nu^T."""

    key: Expr
    value: Expr


@dataclass(frozen=True, slots=True)
class Readout:
    """o = gain * (query^T S_p + sum_a pairs[a] u_a + sum_b writes[b] nu_b) + direct, at the node
    itself.

    Right acting, the query contracts the unknowns instead: a node's own pair enters as
    pairs[a] (q^T u_a) w_a, a pure write as writes[b] (q^T nu_b) kappa_b, and the weights are plain
    shares (1 when the output reads the new state, 0 when it reads the parent's).
    """

    query: Reading
    pairs: tuple[Expr, ...]
    """HEAD scalars: how much of the node's own u_a the output sees (q^T w_a when it reads the new
    state)."""
    writes: tuple[Expr, ...]
    """HEAD scalars: the same for the pure writes."""
    direct: Expr | None
    """A VALUE vector added to the output, or None."""
    gain: Expr | None = None
    """A VALUE vector that scales all but `direct`, or None for one."""


@dataclass(frozen=True, slots=True)
class NormalForm:
    """See the module. `decay` is D (HEAD, KEY or VALUE kind; the number 1 when there is none),
    `log_decay` its logarithm."""

    recurrence: Recurrence
    side: str
    decay: Expr
    log_decay: Expr
    pairs: tuple[Pair, ...]
    writes: tuple[Write, ...]
    readout: Readout
    further: tuple[Readout, ...] = ()
    """How the other outputs of the recurrence read, where this form is that of the first."""

    @property
    def readouts(self) -> tuple[Readout, ...]:
        """One for each output of the recurrence, in order."""
        return (self.readout, *self.further)

    @property
    def micro_steps(self) -> int:
        """How many pairs of one token act one after the other: the nilpotency index is micro_steps
        * (depth + 1)."""
        from boleir.derive.structure import longest_coupling_chain

        return longest_coupling_chain(self.pairs)
