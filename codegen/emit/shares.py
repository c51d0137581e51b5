"""Shares of the prepare kernel's programs: which unit, usually a head, and which nodes."""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.emit.writer import Writer


@dataclass(frozen=True, slots=True)
class Share:
    """Programs that do the same for several units: numbers from `first` on of a request's programs.

    Each takes up to `nodes` nodes of one unit, or of several units `together`.
    """

    first: int
    units: int
    max_nodes: int
    nodes: int
    together: int = 1

    @property
    def groups(self) -> int:
        """Programs that take the same nodes."""
        return -(-self.units // self.together)

    @property
    def end(self) -> int:
        """The number after the last one."""
        return self.first + self.groups * -(-self.max_nodes // self.nodes)

    @property
    def test(self) -> str:
        """Whether a program belongs to them, as a condition on `task`."""
        last = f"task < {self.end}"
        return f"(task >= {self.first}) & ({last})" if self.first else last

    def decode(self, w: Writer) -> None:
        """Lines that find the unit and the nodes; `lane` is a place in the vector of the nodes of
        all units of the program."""
        task = f"task - {self.first}" if self.first else "task"
        first = ""
        if self.nodes < self.max_nodes:
            task = f"({task})" if self.first else task
            first = f"{task} // {self.groups} * {self.nodes} + "
            task = f"{task} % {self.groups}"
        if self.together == 1:
            w.let("unit", task)
            w.let("node", f"{first}tl.arange(0, {self.nodes})")
        else:
            w.let("lane", f"tl.arange(0, {self.together * self.nodes})")
            unit = f"({task}) * {self.together} + lane // {self.nodes}"
            if self.units % self.together:
                w.comment("the last unit may come several times, with the same results")
                unit = f"tl.minimum({unit}, {self.units - 1})"
            w.let("unit", unit)
            w.let("node", f"{first}lane % {self.nodes}")
        w.let("inside", "node < count")
        w.let("row", "first + node")


__all__ = ["Share"]
