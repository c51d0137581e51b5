"""Arguments that several commands share, and what they mean."""

from __future__ import annotations

import argparse
import inspect
import os
import re
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from boleir.errors import BoleirError, SpecError, TreeError

if TYPE_CHECKING:
    from boleir.ir import Recurrence
    from boleir.language.tree_spec import StaticTree, TreeSpec


def add_recurrence(parser: argparse.ArgumentParser) -> None:
    """The positional RECURRENCE."""
    parser.add_argument(
        "recurrence",
        metavar="RECURRENCE",
        help="a shipped name, a .bole file (FILE or FILE:NAME), or MODULE:FUNCTION",
    )


def find_recurrence(text: str) -> Recurrence:
    """What `text` names: `gdn` (shipped), `my.bole`, `my.bole:name` or `module:function`.

    Raises `SpecError` (also for what is wrong inside it).
    """
    from boleir.library import load, load_module

    path, colon, name = text.partition(":")
    if not colon:
        return _only_one(text) if text.endswith(".bole") else load(text)
    if not name or not path:
        raise SpecError(
            f"{text!r} names no recurrence",
            mend="gdn (shipped), my.bole, my.bole:name or module:function",
        )
    if path.endswith(".bole"):
        return load_module(path).recurrence(name)
    return _from_module(path, name)


def _only_one(path: str) -> Recurrence:
    """The recurrence of a file, or the one that is named like it."""
    from boleir.language.errors import UnknownRecurrence
    from boleir.library import load_module, without_recurrence

    found = load_module(path).recurrences
    if not found:
        raise without_recurrence(path)
    named = [item for item in found if len(found) == 1 or item.name == Path(path).stem]
    if not named:
        raise UnknownRecurrence(
            f"{path}: which recurrence? declared are: {', '.join(item.name for item in found)}",
            mend=f"{path}:{found[0].name}",
        )
    return named[0]


def _from_module(module: str, name: str) -> Recurrence:
    """A recurrence object of an importable module; the current folder is searched too."""
    from boleir.ir import Recurrence

    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    if module.startswith("."):
        raise SpecError(f"{module}: name the module in full, without leading dots")
    try:
        imported = import_module(module)
    except ModuleNotFoundError as error:
        raise SpecError(f"{module}:{name}: no module named {error.name!r}") from error
    except BoleirError:
        raise
    except (Exception, SystemExit) as error:
        raise _failed(error, f"{module} cannot be imported") from error
    if not hasattr(imported, name):
        raise SpecError(f"{module} has no {name!r}")
    found = getattr(imported, name)
    if inspect.isfunction(found):
        from boleir.language.tracing import trace

        try:
            return trace(found)
        except BoleirError:
            raise
        except (Exception, SystemExit) as error:
            raise _failed(error, f"{module}:{name} fails") from error
    if not isinstance(found, Recurrence):
        raise SpecError(
            f"{module}:{name} is a {type(found).__name__}, not a recurrence",
            mend="decorate the function with @boleir.recurrence",
        )
    return found


def _failed(error: BaseException, what: str) -> SpecError:
    """The user's own code failed: where, what and why."""
    from boleir.language.python_errors import place_of, unknown_name

    told = error.msg if isinstance(error, SyntaxError) else str(error)
    reason = " ".join(told.split())
    mend = unknown_name(error).mend if isinstance(error, NameError) else None
    return SpecError(
        f"{what}: {type(error).__name__}{': ' if reason else ''}{reason}",
        span=place_of(error),
        mend=mend or "run again with --debug for the traceback",
    )


def pair_of_integers(text: str, separator: str) -> tuple[int, int]:
    """Two positive integers, such as `16:32` or `128x128`; for argparse."""
    match = re.fullmatch(rf"(\d{{1,9}}){separator}(\d{{1,9}})", text)
    if match is None or not all(int(part) for part in match.groups()):
        raise argparse.ArgumentTypeError(f"{text!r} is not like 16{separator}32")
    return int(match.group(1)), int(match.group(2))


def heads(text: str) -> tuple[int, int]:
    """Key heads and value heads, `16:32`; value heads must be a multiple."""
    keys, values = pair_of_integers(text, ":")
    if values % keys:
        raise argparse.ArgumentTypeError(
            f"{values} value heads are no multiple of {keys} key heads"
        )
    return keys, values


def dims(text: str) -> tuple[int, int]:
    """d_k and d_v, `128x128`."""
    return pair_of_integers(text, "x")


def positive(text: str) -> int:
    """A positive integer."""
    if not re.fullmatch(r"\d{1,9}", text) or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive integer")
    return int(text)


def natural(text: str) -> int:
    """An integer that is not negative."""
    if not re.fullmatch(r"\d{1,9}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is not a non-negative integer")
    return int(text)


def find_tree(text: str, recurrence: str = "") -> TreeSpec:
    """The tree that `text` denotes: parents (`-1,0,0,1`), an expression of the language
    (`beam(width=4, depth=5)`), or the name of a tree that the file of `recurrence` declares.
    Raises `TreeError` or `SpecError`."""
    from boleir.language.parser import parse_tree
    from boleir.language.tree_spec import parents

    if re.fullmatch(r"[-\d,\s]+", text):
        try:
            return parents(*(int(part) for part in text.split(",")))
        except ValueError:
            raise TreeError(f"{text!r} is no list of parents", mend="-1,0,0,1,1,2") from None
    file = recurrence.partition(":")[0]
    if file.endswith(".bole") and text.isidentifier():
        from boleir.library import load_module

        return load_module(file).tree(text)
    if "(" not in text:
        raise TreeError(f"{text!r} is no tree", mend="-1,0,0,1,1,2 or beam(width=4, depth=5)")
    return parse_tree(text, "--tree")


def static_tree(text: str, recurrence: str = "") -> StaticTree:
    """Like `find_tree`, for what needs the topology itself. Raises `TreeError` for bounds."""
    from boleir.language.tree_spec import StaticTree

    tree = find_tree(text, recurrence)
    if not isinstance(tree, StaticTree):
        raise TreeError(
            f"{text!r} is a bound on trees, not a tree", mend="-1,0,0,1,1,2 or chain(4)"
        )
    return tree
