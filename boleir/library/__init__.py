"""The recurrences that come with boleir, each a `.bole` file of this folder."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from boleir.errors import SpecError
from boleir.language.errors import UnknownName, UnknownRecurrence, did_you_mean

if TYPE_CHECKING:
    from boleir.ir import Recurrence
    from boleir.language.parser import Module

_FOLDER = Path(__file__).parent
_SUFFIX = ".bole"


def names() -> tuple[str, ...]:
    """Names of the shipped recurrences, in alphabetical order."""
    return tuple(sorted(path.stem for path in _FOLDER.glob(f"*{_SUFFIX}")))


def path(name: str) -> Path:
    """The file of a shipped recurrence. Raises `UnknownRecurrence`."""
    if name not in names():
        mend = did_you_mean(name, names()) or f"shipped are: {', '.join(names())}"
        raise UnknownRecurrence(f"no shipped recurrence '{name}'", mend=mend)
    return _FOLDER / f"{name}{_SUFFIX}"


def load(name: str | Path) -> Recurrence:
    """A shipped recurrence by name (`"gdn"`), or the one in a file (`"my/own.bole"`).

    Of a file with several recurrences the one named like the file is meant; `load_module` gives all
    of them. Raises a `SpecError`: `UnknownRecurrence` when there is no such thing, or whatever is
    wrong with the text.
    """
    module = load_module(name)
    stem = Path(name).stem
    if not module.recurrences:
        raise without_recurrence(name)
    if len(module.recurrences) == 1:
        return module.recurrences[0]
    try:
        return module.recurrence(stem)
    except UnknownName:
        declared = [item.name for item in module.recurrences]
        raise UnknownRecurrence(
            f"{name}: which recurrence? declared are: {', '.join(declared)}",
            mend=f"boleir.load_module({str(name)!r}).recurrence({declared[0]!r})",
        ) from None


def without_recurrence(name: str | Path) -> UnknownRecurrence:
    """The error for a file that declares nothing, or trees alone."""
    return UnknownRecurrence(
        f"{name} declares no recurrence",
        mend="recurrence NAME(q: key, k: key, v: value), and below it S = ... and out ...",
    )


def resolve(recurrence: Recurrence | str) -> Recurrence:
    """A recurrence, or the one that `load` gives for a name. Raises `SpecError` for anything
    else."""
    from boleir.ir import Recurrence

    if isinstance(recurrence, str):
        return load(recurrence)
    if not isinstance(recurrence, Recurrence):
        raise SpecError(
            f"a {type(recurrence).__name__} is no recurrence",
            mend="decorate a function with @boleir.recurrence; boleir.parse reads text",
        )
    return recurrence


def load_module(name: str | Path) -> Module:
    """Everything that a shipped file, or a file of one's own, declares. Raises as `load` does."""
    from boleir.language.text import read_text

    if (
        isinstance(name, str)
        and not name.endswith(_SUFFIX)
        and "/" not in name
        and "\\" not in name
    ):
        return _shipped(name)
    from boleir.language.parser import parse_module

    try:
        return parse_module(read_text(Path(name)), str(name))
    except OSError as error:
        raise UnknownRecurrence(f"{name}: {error.strerror or error}") from None


@cache
def _shipped(name: str) -> Module:
    from boleir.language.parser import parse_module
    from boleir.language.text import read_text

    return parse_module(read_text(path(name)), f"{name}{_SUFFIX}")
