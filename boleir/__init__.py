"""boleir: exact tree verification for recurrences that you write yourself.

Write a recurrence (a `.bole` text or a Python function), `derive` its closed form over a proposal tree, `compile` it
into GPU kernels, `verify` and commit. Everything below is imported when it is first used, so that `import boleir` costs
nothing and a serving process never imports the parser or the algebra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from boleir.derive.derive import derive as derive
    from boleir.errors import BoleirError as BoleirError
    from boleir.errors import CacheError as CacheError
    from boleir.errors import CheckError as CheckError
    from boleir.errors import CompileError as CompileError
    from boleir.errors import DerivationError as DerivationError
    from boleir.errors import LaunchError as LaunchError
    from boleir.errors import ScheduleError as ScheduleError
    from boleir.errors import SpecError as SpecError
    from boleir.errors import TreeError as TreeError
    from boleir.ir import Recurrence as Recurrence
    from boleir.language.parser import Module as Module
    from boleir.language.parser import parse as parse
    from boleir.language.parser import parse_module as parse_module
    from boleir.language.parser import parse_tree as parse_tree
    from boleir.language.tree_spec import BoundedTree as BoundedTree
    from boleir.language.tree_spec import StaticTree as StaticTree
    from boleir.language.tree_spec import beam as beam
    from boleir.language.tree_spec import chain as chain
    from boleir.language.tree_spec import dynamic as dynamic
    from boleir.language.tree_spec import from_networkx as from_networkx
    from boleir.language.tree_spec import parents as parents
    from boleir.library import load as load
    from boleir.library import load_module as load_module
    from boleir.library import names as names
    from boleir.runtime.api import compile as compile
    from boleir.runtime.pool import StatePool as StatePool
    from boleir.runtime.tree_batch import TreeBatch as TreeBatch

_HOMES = {
    "boleir.derive.derive": ("derive",),
    "boleir.errors": (
        "BoleirError",
        "CacheError",
        "CheckError",
        "CompileError",
        "DerivationError",
        "LaunchError",
        "ScheduleError",
        "SpecError",
        "TreeError",
    ),
    "boleir.ir": ("Recurrence",),
    "boleir.language.parser": ("Module", "parse", "parse_module", "parse_tree"),
    "boleir.language.tree_spec": ("BoundedTree", "StaticTree", "beam", "chain", "dynamic", "from_networkx", "parents"),
    "boleir.library": ("load", "load_module", "names"),
    "boleir.runtime.api": ("compile",),
    "boleir.runtime.pool": ("StatePool",),
    "boleir.runtime.tree_batch": ("TreeBatch",),
}
_HOME = {name: module for module, group in _HOMES.items() for name in group}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> Any:
    """The public name, imported from its home on first use."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'boleir' has no attribute '{name}'")
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
