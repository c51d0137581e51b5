"""From a recurrence to its closed form over a proposal tree.

The state is separated from everything else by abstract interpretation (`interpret`), the result is
put into the normal form (`assemble`), and a `ClosedForm` states the theorem for it (`derive`).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boleir.derive.closed_form import ClosedForm
    from boleir.derive.normal_form import NormalForm
    from boleir.ir import Recurrence


def normal_form(recurrence: Recurrence) -> NormalForm:
    """The normal form of `recurrence`. Raises a `boleir.derive.refusals.Refusal` for one outside
    the family, naming the offending term and the reason."""
    from boleir.derive.assemble import assemble

    return assemble(recurrence)


class _Callable(ModuleType):
    """`boleir.derive` names this package and, for users, the function: importing a submodule must
    not take the function away, so the package can be called."""

    def __call__(self, recurrence: Recurrence | str) -> ClosedForm:
        from boleir.derive.derive import derive

        return derive(recurrence)


sys.modules[__name__].__class__ = _Callable
