"""One class per mistake that a text or a traced function can contain.

All derive from `SpecError`, so `except SpecError` catches every one of them; tools that want to
react to one kind of mistake (an editor offering a rename, say) catch the class.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from boleir.errors import SpecError


class BadEncoding(SpecError):
    """The file is not UTF-8 text."""


class BadCharacter(SpecError):
    """The text holds a character that no text should hold (NUL, control, bidirectional override,
    surrogate).
    """


class TextTooLong(SpecError):
    """The text is far longer than any recurrence, so it is refused before it is read."""


class NestingTooDeep(SpecError):
    """Brackets, or operations, nest deeper than the limit."""


class UnbalancedBracket(SpecError):
    """A bracket is never closed, never opened, or closed by the wrong partner."""


class BadSyntax(SpecError):
    """The words are right, their order is not."""


class UnknownName(SpecError):
    """A name was read that nothing defines."""


class UnknownKind(SpecError):
    """An input is declared with a kind that does not exist, or with none."""


class DuplicateName(SpecError):
    """A name is defined twice."""


class ReservedName(SpecError):
    """A name that the language (or Python, for inputs) keeps for itself was defined."""


class UnusedInput(SpecError):
    """An input takes no part in the new state or the output."""


class UnusedName(SpecError):
    """A name is computed and never read."""


class KindMismatch(SpecError):
    """An operation met kinds it has no rule for."""


class NoSuchProduct(KindMismatch):
    """Two factors stand side by side (or round `@`) and no product of their kinds exists."""


class FunctionOfStateMatrix(KindMismatch):
    """A function was applied to a whole state (exp, tanh, a norm): not affine in it."""


class ElementwiseState(KindMismatch):
    """Two states were multiplied elementwise: a d_k x d_v factor has no matrix form."""


class ProductOfStateMatrices(NoSuchProduct):
    """A matrix product holds the state twice (Muon, Newton-Schulz): not affine in it."""


class RoundedState(UnknownName):
    """The state was to be rounded inside the recurrence."""


class SoftmaxOfState(UnknownName):
    """A softmax was called for."""


class ClipOfState(UnknownName):
    """A clip, minimum or maximum was called for."""


class NormOfState(UnknownName):
    """A norm other than `l2norm` of a vector was called for."""


class MatrixFunction(UnknownName):
    """A matrix function was called for: an inverse, an orthogonalisation."""


class BadArguments(SpecError):
    """A function was called with the wrong number or the wrong names of arguments."""


class NotATokenInput(SpecError):
    """A causal convolution was asked for something that is not a token input as declared."""


class BadConstant(SpecError):
    """A constant is not a finite number of sensible size."""


class MissingUpdate(SpecError):
    """No statement assigns to `S`, or what is assigned is not a state."""


class MissingOutput(SpecError):
    """There is no `out`, or it is not a value vector."""


class DuplicateOutput(SpecError):
    """The same output is put out twice."""


class BadTree(SpecError):
    """A tree declaration does not describe a tree."""


class BadSignature(SpecError):
    """A Python function cannot be read as the signature of a recurrence."""


class ControlFlow(SpecError):
    """A traced function branches, loops or compares on a value that is only known on the device."""


class UnsupportedOperation(SpecError):
    """A traced value met an operation that recurrences do not have."""


class UnknownRecurrence(SpecError):
    """No shipped recurrence, and no file, has the name asked for."""


def did_you_mean(name: str, candidates: Iterable[str]) -> str | None:
    """A mend that offers the closest of `candidates`, or None when nothing is close."""
    known = sorted(set(candidates))
    exact = [item for item in known if item.lower() == name.lower()]
    close = exact or get_close_matches(name[:80], known, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'?" if close else None
