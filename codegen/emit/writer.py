"""Writing a kernel: lines, names, and the arguments that its lines turned out to need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from boleir.codegen.launch_spec import Grid


@dataclass(frozen=True, slots=True)
class EmittedKernel:
    """Source text of one kernel and how it is called."""

    name: str
    text: str
    arguments: tuple[tuple[str, str], ...]
    """Name and type (`*bf16`, `i64`, ...) in order."""
    grid: Grid
    warps: int
    stages: int
    pdl: bool
    registers: int
    """Most registers per thread; 0 leaves it to the assembler."""
    doc: str


class Writer:
    """Collects the body of one kernel. `arg` names an argument the first time it is used."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.arguments: dict[str, str] = {}
        self._indent = 1
        self._fresh = 0

    def arg(self, name: str, kind: str) -> str:
        """Declare argument `name` of type `kind`; returns the name."""
        assert self.arguments.setdefault(name, kind) == kind
        return name

    def line(self, text: str) -> None:
        """One line at the current indentation."""
        self.lines.append("    " * self._indent + text)

    def comment(self, text: str) -> None:
        """A comment line."""
        self.line(f"# {text}")

    def let(self, name: str, value: str) -> str:
        """`name = value`; returns the name."""
        self.line(f"{name} = {value}")
        return name

    def temp(self, value: str, stem: str = "x") -> str:
        """Bind a value to a new name."""
        self._fresh += 1
        return self.let(f"{stem}{self._fresh}_", value)

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented block under `header`."""
        self.line(header)
        self._indent += 1
        yield
        self._indent -= 1

    def kernel(
        self, name: str, doc: str, grid: Grid, *, warps: int, stages: int = 1, pdl: bool = False,
        registers: int = 0,
    ) -> EmittedKernel:  # fmt: skip
        """The finished kernel."""
        signature = ", ".join(self.arguments)
        head = ["@triton.jit", *_wrapped(f"def {name}(", signature, "):"), f'    """{doc}"""']
        text = "\n".join(head + self.lines) + "\n"
        return EmittedKernel(name, text, tuple(self.arguments.items()), grid, warps, stages, pdl, registers, doc)


def _wrapped(opening: str, items: str, closing: str, width: int = 110) -> list[str]:
    if len(opening) + len(items) + len(closing) <= width:
        return [opening + items + closing]
    lines, current = [opening], "   "
    for item in items.split(", "):
        if len(current) + len(item) + 2 > width:
            lines.append(current)
            current = "   "
        current += f" {item},"
    return [*lines, current, closing]
