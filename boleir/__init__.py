"""boleir: exact tree verification for recurrences that you write yourself.

Write a recurrence (a `.bole` text or a Python function), `derive` its closed form over a proposal
tree, `compile` it into GPU kernels, verify and commit. Everything below is imported when it is
first used, so that `import boleir` costs nothing and a serving process never imports parser or
algebra.
"""

from __future__ import annotations

import sys
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
    from boleir.ir import Kind as Kind
    from boleir.ir import Recurrence as Recurrence
    from boleir.language.parser import Module as Module
    from boleir.language.parser import parse as parse
    from boleir.language.parser import parse_module as parse_module
    from boleir.language.parser import parse_tree as parse_tree
    from boleir.language.symbols import Head as Head
    from boleir.language.symbols import I as I
    from boleir.language.symbols import Key as Key
    from boleir.language.symbols import State as State
    from boleir.language.symbols import Traced as Traced
    from boleir.language.symbols import Value as Value
    from boleir.language.symbols import abs as abs
    from boleir.language.symbols import causal_conv as causal_conv
    from boleir.language.symbols import d_k as d_k
    from boleir.language.symbols import d_v as d_v
    from boleir.language.symbols import diag as diag
    from boleir.language.symbols import dot as dot
    from boleir.language.symbols import exp as exp
    from boleir.language.symbols import l2norm as l2norm
    from boleir.language.symbols import log as log
    from boleir.language.symbols import outer as outer
    from boleir.language.symbols import reciprocal as reciprocal
    from boleir.language.symbols import relu as relu
    from boleir.language.symbols import rsqrt as rsqrt
    from boleir.language.symbols import sigmoid as sigmoid
    from boleir.language.symbols import silu as silu
    from boleir.language.symbols import softplus as softplus
    from boleir.language.symbols import sqrt as sqrt
    from boleir.language.symbols import square as square
    from boleir.language.symbols import sum as sum
    from boleir.language.symbols import tanh as tanh
    from boleir.language.tracing import recurrence as recurrence
    from boleir.language.tracing import trace as trace
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
    from boleir.runtime.api import load_compiled as load_compiled
    from boleir.runtime.kernel import Kernel as Kernel
    from boleir.runtime.pool import SlotFormat as SlotFormat
    from boleir.runtime.pool import StatePool as StatePool
    from boleir.runtime.tree_batch import TreeBatch as TreeBatch

_HOMES = {
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
    "boleir.ir": (
        "Kind",
        "Recurrence",
    ),
    "boleir.language.parser": (
        "Module",
        "parse",
        "parse_module",
        "parse_tree",
    ),
    "boleir.language.symbols": (
        "Head",
        "I",
        "Key",
        "State",
        "Traced",
        "Value",
        "abs",
        "causal_conv",
        "d_k",
        "d_v",
        "diag",
        "dot",
        "exp",
        "l2norm",
        "log",
        "outer",
        "reciprocal",
        "relu",
        "rsqrt",
        "sigmoid",
        "silu",
        "softplus",
        "sqrt",
        "square",
        "sum",
        "tanh",
    ),
    "boleir.language.tracing": (
        "recurrence",
        "trace",
    ),
    "boleir.language.tree_spec": (
        "BoundedTree",
        "StaticTree",
        "beam",
        "chain",
        "dynamic",
        "from_networkx",
        "parents",
    ),
    "boleir.library": (
        "load",
        "load_module",
        "names",
    ),
    "boleir.runtime.api": ("compile", "load_compiled"),
    "boleir.runtime.kernel": ("Kernel",),
    "boleir.runtime.pool": ("SlotFormat", "StatePool"),
    "boleir.runtime.tree_batch": ("TreeBatch",),
}
_PACKAGES = frozenset({"derive"})
"""Packages that can be called, so that importing a part of one does not hide the function."""
_HOME = {name: module for module, group in _HOMES.items() for name in group}

__all__ = [
    "BoleirError",
    "BoundedTree",
    "CacheError",
    "CheckError",
    "CompileError",
    "DerivationError",
    "Head",
    "I",
    "Kernel",
    "Key",
    "Kind",
    "LaunchError",
    "Module",
    "Recurrence",
    "ScheduleError",
    "SlotFormat",
    "SpecError",
    "State",
    "StatePool",
    "StaticTree",
    "Traced",
    "TreeBatch",
    "TreeError",
    "Value",
    "abs",
    "beam",
    "causal_conv",
    "chain",
    "compile",
    "d_k",
    "d_v",
    "derive",
    "diag",
    "dot",
    "dynamic",
    "exp",
    "from_networkx",
    "l2norm",
    "load",
    "load_compiled",
    "load_module",
    "log",
    "names",
    "outer",
    "parents",
    "parse",
    "parse_module",
    "parse_tree",
    "reciprocal",
    "recurrence",
    "relu",
    "rsqrt",
    "sigmoid",
    "silu",
    "softplus",
    "sqrt",
    "square",
    "sum",
    "tanh",
    "trace",
]


def __getattr__(name: str) -> Any:
    """The public name, imported from its home on first use."""
    if name in _PACKAGES:
        return import_module(f"boleir.{name}")
    home = _HOME.get(name)
    if home is None:
        raise _unknown(name)
    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def _unknown(name: str) -> AttributeError:
    """For a function that recurrences do not have, with the reason and the place."""
    from boleir.language.foreign import FOREIGN, foreign

    if name not in FOREIGN:
        return AttributeError(f"module 'boleir' has no attribute '{name}'")
    from boleir.language.frames import span_of
    from boleir.language.symbols import UnknownAttribute

    refusal = foreign(name, span_of(sys._getframe(2)))
    assert refusal is not None
    return UnknownAttribute(refusal.message, span=refusal.span, mend=refusal.mend)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
