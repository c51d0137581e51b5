"""Writing a kernel: lines, names, and the arguments that its lines turned out to need."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import PurePath

from boleir.codegen.launch_spec import Grid
from boleir.errors import Span

WIDTH = 110
"""Columns after which a line is continued on the next."""

_ASSIGNED = re.compile(r"^ *(?:for )?(\w+)(?: =| in) ", re.MULTILINE)


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

    def part(self, name: str) -> EmittedKernel:
        """The same as a function `name` that another kernel calls: reserved, since an input may
        be called as the kernel is."""
        text = self.text.replace(f"def {self.name}(", f"def {name}(", 1)
        return replace(self, name=name, text=text)


class Writer:
    """Collects the body of one kernel.

    `arg` names an argument the first time it is used; the `$` in front of it keeps arguments apart
    from local names until the kernel is finished, so that an input may have any name. `memo`
    remembers what has a name already; what a block adds is forgotten at its end, as the name means
    nothing outside.
    """

    def __init__(self, reserved: Iterable[str] = ()) -> None:
        self.lines: list[str] = []
        self.arguments: dict[str, str] = {}
        self.memo: dict[tuple[object, ...], str] = {}
        self.precise = False
        """Whether exponentials are taken to the last digit."""
        self._issued = set(reserved)
        self._indent = 1

    def arg(self, name: str, kind: str) -> str:
        """Declare argument `name` of type `kind`; returns its spelling."""
        assert self.arguments.setdefault(name, kind) == kind
        return f"${name}"

    def line(self, text: str) -> None:
        """One line at the current indentation."""
        self.lines.append("    " * self._indent + text)

    def comment(self, text: str) -> None:
        """A comment line."""
        self.line(f"# {text}")

    def section(self, text: str) -> None:
        """A comment above a group of lines that belong together."""
        if self.lines and not self.lines[-1].lstrip().startswith(("#", "if ", "for ")):
            self.lines.append("")
        self.comment(text)

    def origin(self, what: str, span: Span | None) -> None:
        """Where in the source `what` comes from; nothing where that is not known."""
        if span is not None:
            self.comment(f"{what}: {PurePath(span.source.name).name}:{span.line}")

    def let(self, name: str, value: str) -> str:
        """`name = value`; returns the name."""
        if name != value:
            self.line(f"{name} = {value}")
        return name

    def temp(self, value: str, stem: str) -> str:
        """Bind a value to a new name; returns the name."""
        return self.let(self.fresh(stem), value)

    def fresh(self, stem: str) -> str:
        """A name that has not been given yet: `stem`, or `stem` with a number."""
        name, number = stem, 2
        while name in self._issued:
            name, number = f"{stem}_{number}", number + 1
        self._issued.add(name)
        return name

    def apart(self, emit: Callable[[], None]) -> list[str]:
        """The lines that `emit` writes, for later."""
        start = len(self.lines)
        emit()
        lines = self.lines[start:]
        del self.lines[start:]
        return lines

    @contextmanager
    def block(self, header: str) -> Iterator[None]:
        """An indented block under `header`; names it introduces end with it."""
        self.line(header)
        self._indent += 1
        with self.scope():
            yield
        self._indent -= 1

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Lines whose names mean something else afterwards."""
        memo, issued = dict(self.memo), set(self._issued)
        yield
        self.memo.clear()
        self.memo.update(memo)
        self._issued = issued

    def kernel(
        self, name: str, doc: str, grid: Grid, *, warps: int, stages: int = 1, pdl: bool = False,
        registers: int = 0,
    ) -> EmittedKernel:  # fmt: skip
        """The finished kernel."""
        head = ["@triton.jit", *_signature(name, self.arguments), f'    """{doc}"""']
        body = [part for line in self._finished() for part in folded(line)]
        text = "\n".join(head + body) + "\n"
        arguments = tuple(self.arguments.items())
        return EmittedKernel(name, text, arguments, grid, warps, stages, pdl, registers, doc)

    def _finished(self) -> list[str]:
        """The lines, local names that an argument has taken renamed."""
        text = "\n".join(self.lines)
        for name in sorted(set(_ASSIGNED.findall(text)) & set(self.arguments)):
            text = re.sub(rf"(?<![\w$.]){name}\b", f"{name}_local", text)
        return text.replace("$", "").split("\n")


def _signature(name: str, arguments: Iterable[str]) -> list[str]:
    opening, items = f"def {name}(", ", ".join(arguments)
    if len(opening) + len(items) + 2 <= WIDTH:
        return [f"{opening}{items}):"]
    lines, current = [opening], "   "
    for item in arguments:
        if len(current) + len(item) + 2 > WIDTH:
            lines.append(current)
            current = "   "
        current += f" {item},"
    return [*lines, current, "):"]


def folded(line: str) -> list[str]:
    """`line` in pieces of at most `WIDTH` columns, continued inside its outermost brackets."""
    if len(line) <= WIDTH or line.lstrip().startswith("#"):
        return [line]
    name, equals, value = line.partition(" = ")
    if equals and _has_operator(value):
        line = f"{name} = ({value})"
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    pieces, depth = [], 0
    while len(line) > WIDTH and (places := _breaks(line, depth)):
        best = min(rank for _, rank in places)
        at = max(place for place, rank in places if rank == best)
        depth += line[:at].count("(") - line[:at].count(")")
        pieces.append(line[:at])
        line = indent + line[at:].lstrip()
    return [*pieces, line]


def _has_operator(text: str) -> bool:
    """Whether an operator stands outside all brackets."""
    depth = 0
    for char in text:
        depth += (char in "([") - (char in ")]")
        if char == " " and not depth:
            return True
    return False


def balanced(text: str) -> bool:
    """Whether every bracket of `text` closes one that was opened in it."""
    depth = 0
    for char in text:
        depth += (char == "(") - (char == ")")
        if depth < 0:
            return False
    return depth == 0


def _breaks(line: str, depth: int) -> list[tuple[int, tuple[int, int]]]:
    """Places inside brackets where a line that starts in `depth` of them may end; the lower the
    rank the better: depth first, then commas before operators."""
    index, places = 0, []
    for at, char in enumerate(line[:WIDTH]):
        depth += (char == "(") - (char == ")")
        index += (char == "[") - (char == "]")
        if depth > 0 and not index and char == " " and at > WIDTH // 3:
            if line[at - 1] == ",":
                places.append((at, (depth, 0)))
            elif line[at + 1 : at + 3] in ("& ", "| ", "+ ", "- ", "* "):
                places.append((at, (depth, 1)))
    return places
