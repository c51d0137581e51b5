"""What an expression denotes while it is read: an IR expression, possibly seen from the side."""

from __future__ import annotations

from dataclasses import dataclass

from boleir.ir import Expr
from boleir.language.kinds import NOUN


@dataclass(frozen=True, slots=True)
class Term:
    """An expression and whether it stands transposed; the IR itself has no transposition (`k^T S`
    is `S^T k`).
    """

    expr: Expr
    transposed: bool = False

    @property
    def shape(self) -> str:
        """Kind with `^T` when transposed, as the tables spell it."""
        return f"{self.expr.kind}^T" if self.transposed else str(self.expr.kind)

    def describe(self) -> str:
        """What it is, for messages."""
        return NOUN[self.expr.kind] + (" transposed" if self.transposed else "")
