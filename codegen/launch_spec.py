"""How a compiled kernel is launched: its arguments in order, its grid, its shape.

A grid is three expressions over named integers such as `batch`, `32 * cdiv(nodes, 16)` or `1`:
integers, names, `+ - * // %`, parentheses, `cdiv`, `min` and `max`. They are parsed, checked
against that list and compiled to one Python function, so that a launch evaluates them in well under
a microsecond.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from boleir.codegen.kernel_spec import ARGUMENT_TYPES, CompiledKernel, KernelSpec
from boleir.errors import CompileError

Grid = tuple[str, str, str]

MAX_EXPRESSION = 200

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv, ast.Mod)
_FUNCTIONS: dict[str, Callable[..., int]] = {
    "cdiv": lambda numerator, denominator: -(-numerator // denominator),
    "min": min,
    "max": max,
}


class GridError(CompileError):
    """A grid expression that is not one, or that uses an unknown name."""


def grid_names(grid: Grid) -> tuple[str, ...]:
    """The integers a grid depends on, in alphabetical order. Raises `GridError`."""
    found: set[str] = set()
    for text in grid:
        _collect(_parse(text), text, found)
    return tuple(sorted(found))


def compile_grid(grid: Grid, names: tuple[str, ...]) -> Callable[..., tuple[int, int, int]]:
    """A function of `names`, in that order, that returns the three grid sizes."""
    missing = [name for name in grid_names(grid) if name not in names]
    if missing:
        raise GridError(
            f"grid {grid} uses {missing[0]!r}", mend=f"known: {', '.join(names) or 'no names'}"
        )
    bad = [name for name in names if not name.isidentifier() or name in _FUNCTIONS]
    if bad:
        raise GridError(f"{bad[0]!r} cannot name a grid size")
    text = f"lambda {', '.join(names)}: ({', '.join(f'({part})' for part in grid)})"
    function: Callable[..., tuple[int, int, int]] = eval(text, {"__builtins__": {}, **_FUNCTIONS})
    return function


def evaluate_grid(grid: Grid, sizes: Mapping[str, int]) -> tuple[int, int, int]:
    """The three grid sizes for given integers; for tests and reports, not for the launch path."""
    names = tuple(sizes)
    return compile_grid(grid, names)(*(sizes[name] for name in names))


def _parse(text: str) -> ast.expr:
    if len(text) > MAX_EXPRESSION:
        raise GridError(f"a grid expression longer than {MAX_EXPRESSION} characters")
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise GridError(f"not a grid expression: {text[:80]!r}") from None


def _collect(node: ast.expr, text: str, found: set[str]) -> None:
    """Walk an expression, refuse what is not allowed, gather the names."""
    match node:
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return
        case ast.Name(id=name):
            found.add(name)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _OPERATORS):
            _collect(left, text, found)
            _collect(right, text, found)
        case ast.Call(func=ast.Name(id=name), args=[_, _] as args, keywords=[]) if (
            name in _FUNCTIONS
        ):
            for arg in args:
                _collect(arg, text, found)
        case _:
            raise GridError(
                f"not allowed in a grid expression: {ast.unparse(node)[:80]!r} in {text[:80]!r}",
                mend="integers, names, + - * // %, cdiv(a, b), min(a, b), max(a, b)",
            )


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """Everything a launch needs besides the binary and the run-time values."""

    kernel: str
    """Name of the kernel function in the emitted module."""
    entry: str
    """Its symbol in the binary."""
    arguments: tuple[str, ...]
    """Run-time arguments in the order the kernel takes them."""
    types: tuple[str, ...]
    """Their types, as in `KernelSpec.signature`."""
    grid: Grid
    num_warps: int
    shared: int
    """Dynamic shared memory per block, bytes."""
    pdl: bool = False
    """Launch with programmatic stream serialisation (the kernel may start before its predecessor
    in the stream has finished, and waits itself)."""

    def __post_init__(self) -> None:
        if len(self.arguments) != len(self.types):
            raise CompileError(f"kernel {self.kernel}: arguments and types differ in number")
        for name, spelled in zip(self.arguments, self.types, strict=True):
            if not spelled.startswith("*") and spelled not in ARGUMENT_TYPES:
                raise CompileError(f"kernel {self.kernel}: argument {name} has type {spelled!r}")
        grid_names(self.grid)

    @classmethod
    def of(cls, spec: KernelSpec, compiled: CompiledKernel, grid: Grid) -> LaunchSpec:
        """The launch of a kernel compiled from `spec`."""
        runtime = {k: v for k, v in spec.signature.items() if k not in spec.constants}
        return cls(
            kernel=spec.name,
            entry=compiled.entry,
            arguments=tuple(runtime),
            types=tuple(runtime.values()),
            grid=grid,
            num_warps=compiled.num_warps,
            shared=compiled.shared,
            pdl=spec.pdl,
        )

    def to_json(self) -> dict[str, Any]:
        """Plain values; `from_json` gives an equal specification back."""
        return asdict(self) | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> LaunchSpec:
        """Inverse of `to_json`. Raises `CompileError`, `TypeError`, `KeyError` on others."""
        lists = {name: tuple(str(item) for item in values[name]) for name in _LISTS}
        first, second, third = lists["grid"]
        return cls(
            kernel=str(values["kernel"]),
            entry=str(values["entry"]),
            arguments=lists["arguments"],
            types=lists["types"],
            grid=(first, second, third),
            num_warps=int(values["num_warps"]),
            shared=int(values["shared"]),
            pdl=bool(values["pdl"]),
        )


_LISTS = ("arguments", "types", "grid")
