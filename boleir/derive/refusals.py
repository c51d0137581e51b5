"""Why a recurrence may have no closed form over a tree: one error class per reason.

Every message names the offending term, points at it, and says in one sentence why it is refused.
"""

from __future__ import annotations

from textwrap import shorten

from boleir.errors import DerivationError
from boleir.ir import Expr

LONGEST_TERM = 160
"""Characters of a term that a message shows."""


class Refusal(DerivationError):
    """A recurrence outside the family. `term` is the offending expression."""

    REASON = "the state must enter affinely"
    MEND: str | None = None

    def __init__(self, term: Expr, *, detail: str | None = None, mend: str | None = None) -> None:
        from boleir.derive.notation import abbreviated

        reason = detail or self.REASON
        shown = shorten(abbreviated(term), LONGEST_TERM, placeholder=" ...")
        super().__init__(f"`{shown}`: {reason}", span=term.span, mend=mend if mend else self.MEND)
        self.term = term


class GateReadsState(Refusal):
    """A gate, decay or coefficient of the state is computed from the state (as in an LSTM)."""

    REASON = (
        "a factor of the state depends on the state itself, so the update is not affine in it "
        "and different paths cannot be summed"
    )
    MEND = "compute gates from the inputs of the token alone"


class ProductOfStates(Refusal):
    """Two terms that both read the state are multiplied."""

    REASON = "both factors read the state, so the update is quadratic in it"
    MEND = "replace one factor by a vector of the token"


class FunctionOfState(Refusal):
    """A non-linear function is applied to something that reads the state (norm, clip, softmax)."""

    REASON = "a non-linear function of the state is not affine in it"
    MEND = "apply the function to inputs of the token, or to the output outside the recurrence"


class DivisionByState(Refusal):
    """A divisor reads the state."""

    REASON = "dividing by a term that reads the state is not affine in it"
    MEND = "carry the normaliser as an extra value column of ones and divide outside"


class DivisionByZero(Refusal):
    """A divisor is zero for all inputs."""

    REASON = "the divisor is zero for all inputs"
    MEND = "check the signs of its terms"


class ElementwiseDecay(Refusal):
    """A decay with its own number for every entry of the state."""

    REASON = (
        "a decay that varies over keys and over values at once is elementwise on the state "
        "and has no matrix form"
    )
    MEND = "decay key channels (diag(g) * S) or value channels (S * diag(h)), not both"


class TwoSided(Refusal):
    """Low-rank parts act on the keys and on the values, or on both at once."""

    REASON = (
        "the update acts on the keys and on the values of the state by low-rank terms, "
        "which couples all entries of the state"
    )
    MEND = "read the state on one side only: S^T k for a left-acting update, S v for a right-acting"


class ForgetsParent(Refusal):
    """The new state does not contain the parent's state."""

    REASON = "the new state keeps nothing of the parent's state, so there is no path to sum over"
    MEND = "let the decay multiply S, for example S = gamma * S + k v^T"


class NotPositive(Refusal):
    """A decay that is negative for all inputs has no logarithm."""

    REASON = "the decay is never positive, and paths are weighed by exp of summed log decays"
    MEND = "use a positive decay, for example exp(g)"


class StateOutsideProducts(Refusal):
    """The state occurs in an expression that is neither linear in it nor a read of it."""

    REASON = "the state may be scaled, added and read, but not used like this"


class ReadoutNotSupported(Refusal):
    """The output is not made of reads of the state and terms of the token; the classes below say
    what it is."""

    REASON = "the output must be reads of the state, each times a gain, plus terms of the token"
    MEND = "leave further processing of the output outside the recurrence"


class OutputWithoutState(ReadoutNotSupported):
    """Nothing of the state is put out."""

    REASON = "the output does not read the state"
    MEND = "put out a read of it, for example S^T q"


class MixedChannels(ReadoutNotSupported):
    """A read of the state is contracted to a number, or multiplied by a matrix."""

    REASON = "a scalar product with a read mixes its channels, which the output can only scale"
    MEND = "scale a read by a vector, h * (S^T q), and mix channels outside the recurrence"


class ReadFromTheWrongSide(ReadoutNotSupported):
    """A left-acting state is read along its values."""

    REASON = "a left-acting recurrence is read by a key vector (S^T q), not by a value vector"
    MEND = "read it as S^T q"


class ReadInBetween(ReadoutNotSupported):
    """A right-acting output reads a state that is neither the parent's nor the new one."""

    REASON = "a right-acting recurrence is read before the update or after it, not in between"
    MEND = "let decays come before what is written, so that the state read is the new one"


class SeveralReads(ReadoutNotSupported):
    """A right-acting output has two queries."""

    REASON = "a right-acting output is one read: reads by different queries share no weights"
    MEND = "make them outputs of their own"


class RankTooLarge(DerivationError):
    """The updates of one token have so high a rank that the closed form is no gain."""
