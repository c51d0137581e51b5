"""Convolved inputs that one branch of a kernel serves, whichever of them a program works on.

Text that is written once is compiled once; what differs between the inputs, pointers and sizes, is
chosen by the program's unit. Most layers have three inputs that differ in nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby

from boleir.codegen.plan import Mixed


@dataclass(frozen=True, slots=True)
class Alike:
    """Inputs in the order of their channels, and how many units of programs each of them has."""

    inputs: tuple[Mixed, ...]
    units: tuple[int, ...]
    unit: str = "unit"
    """The variable that says which of all these units a program works on."""

    @property
    def names(self) -> str:
        """The inputs, for a comment."""
        return ", ".join(m.source.name for m in self.inputs)

    @property
    def ends(self) -> tuple[int, ...]:
        """The unit after the last one of each input."""
        return tuple(accumulate(self.units))

    def test(self, at: int) -> str | None:
        """Whether a unit belongs to the input with number `at`; None where there is no other."""
        tests = [f"{self.unit} >= {self.ends[at - 1]}"] if at else []
        tests += [f"{self.unit} < {self.ends[at]}"] if at + 1 < len(self.inputs) else []
        return " & ".join(f"({x})" for x in tests) if len(tests) > 1 else next(iter(tests), None)

    def choose(self, spell: Callable[[Mixed], str]) -> str:
        """What `spell` gives for the input that a unit belongs to."""
        texts = [spell(m) for m in self.inputs]
        chosen = texts[-1]
        for at in reversed(range(len(texts) - 1)):
            if texts[at] != texts[at + 1]:
                chosen = f"tl.where({self.unit} < {self.ends[at]}, {texts[at]}, {chosen})"
        return chosen

    def choose_aligned(self, spell: Callable[[Mixed], str], aligned: bool = True) -> str:
        """The same for pointers and strides; a choice forgets that they are multiples of 16."""
        chosen = self.choose(spell)
        return f"tl.multiple_of({chosen}, 16)" if aligned and "tl.where" in chosen else chosen

    @property
    def own_unit(self) -> str:
        """The number of a unit among those of its input."""
        if len(self.inputs) == 1:
            return self.unit
        starts = dict(zip(self.inputs, (0, *self.ends), strict=False))
        return f"{self.unit} - {self.choose(lambda m: str(starts[m]))}"


def alike(
    inputs: Sequence[Mixed],
    key: Callable[[Mixed], object],
    units: Callable[[Mixed], int],
    unit: str = "unit",
) -> list[Alike]:
    """Neighbours with the same `key` together; `units` says how many an input has."""
    groups = (tuple(members) for _, members in groupby(inputs, key))
    return [Alike(members, tuple(units(m) for m in members), unit) for members in groups]


__all__ = ["Alike", "alike"]
