"""Names of everything that can be measured, and how each is built for a workload."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path

from benchmarks import peers
from benchmarks.fla_subject import FlaChain
from benchmarks.serving_shapes import Row
from benchmarks.sglang_subject import SGLangDecode, SGLangReplay, SGLangSerial
from benchmarks.subject import Subject
from benchmarks.torch_subject import TorchSubject
from benchmarks.workload import Workload

Builder = Callable[[Workload, bool, Path], Subject]
"""Takes the workload, whether the full layer is measured, and the folder with the peers."""

BOLEIR = "benchmarks.boleir_subject:make"

BUILDERS: dict[str, Builder] = {
    "torch": lambda work, full, _: TorchSubject(work, full=full),
    "sglang": lambda work, full, folder: SGLangSerial(work, peers.load_sglang(folder), full=full),
    "sglang-replay": lambda work, _, folder: SGLangReplay(work, peers.load_sglang(folder)),
    "sglang-decode": lambda work, _, folder: SGLangDecode(work, peers.load_sglang(folder)),
    "fla-recurrent": lambda work, _, folder: FlaChain(work, peers.load_fla(folder), "recurrent"),
    "fla-chunk": lambda work, _, folder: FlaChain(work, peers.load_fla(folder), "chunk"),
}


def builder(name: str) -> Builder:
    """The builder called `name`; `module:function` names one outside this table.

    Such a function takes `(work, *, full)` and returns a Subject.
    """
    if name in BUILDERS:
        return BUILDERS[name]
    module_name, _, function = (BOLEIR if name == "boleir" else name).partition(":")
    if not function:
        raise ValueError(
            f"unknown subject {name!r}: one of boleir, {', '.join(BUILDERS)}, or MODULE:FUNCTION"
        )
    make = getattr(importlib.import_module(module_name), function)
    return lambda work, full, _: make(work, full=full)


def default_names(row: Row, *, full: bool) -> list[str]:
    """What is measured on `row` unless the user says otherwise."""
    ours = ["boleir"] if importlib.util.find_spec(BOLEIR.partition(":")[0]) else []
    if row.nodes == 1:
        return [*ours, "sglang", "sglang-decode"]
    if row.is_chain and not full:
        return [*ours, "sglang", "sglang-replay", "fla-recurrent"]
    return [*ours, "sglang", "torch"]
