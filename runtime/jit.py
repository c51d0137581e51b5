"""Kernels for the machine at hand: compiled for its GPU and kept, or interpreted on its CPU.

Compilation is the offline one, in worker processes, so that a kernel made just in time is bit for
bit the one that a compiled folder holds. What was compiled stays in the cache folder under a name
made of everything that decides its content.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from boleir.codegen.artifact import Artifact, dump
from boleir.errors import CacheError, CompileError
from boleir.runtime.cache_root import cache_root

if TYPE_CHECKING:
    from boleir.codegen.pipeline import Lowered
    from boleir.codegen.targets import Target
    from boleir.runtime.program import InterpretedProgram

INTERPRET = "TRITON_INTERPRET"
"""Environment variable with which Triton runs kernels on the CPU."""


def interpreting() -> bool:
    """Whether kernels run in Triton's interpreter in this process."""
    return os.environ.get(INTERPRET, "0").lower() not in ("", "0", "false", "off")


def import_text(text: str) -> ModuleType:
    """The emitted module as a Python module, from a file in the cache folder: Triton reads the
    source of its kernels there. The same text gives the same module."""
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    name = f"boleir_emitted_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    folder = cache_root() / "modules"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.py"
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        fresh = folder / f".{name}.{os.getpid()}"
        fresh.write_text(text, encoding="utf-8")
        fresh.replace(path)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def interpreted(lowered: Lowered) -> InterpretedProgram:
    """The kernels as Triton's interpreter runs them.

    Raises `CompileError` when Triton was imported before it was told to interpret: its own library
    is then compiled code.
    """
    import triton.language
    from triton.runtime.interpreter import InterpretedFunction

    from boleir.runtime.program import InterpretedProgram

    if not isinstance(triton.language.sum, InterpretedFunction):
        raise CompileError(
            f"{INTERPRET} was set after Triton was imported",
            mend="set it in the environment before Python starts",
        )
    return InterpretedProgram(
        import_text(lowered.text),
        {kernel.name: tuple(name for name, _ in kernel.arguments) for kernel in lowered.kernels},
        {kernel.name: kernel.grid for kernel in lowered.kernels},
    )


def compiled(lowered: Lowered, target: Target, *, cached: bool = True) -> Artifact:
    """The kernels compiled for `target`: out of the cache folder, else compiled and put there.

    An entry that cannot be read is a miss. Raises `CompileError`.
    """
    from boleir.codegen.artifact_folder import read, write
    from boleir.codegen.build import assemble

    place = cache_root() / "compiled" / _key(lowered, target)
    if cached and place.is_dir():
        try:
            return read(place)
        except CacheError:
            pass
    artifact = assemble([(lowered, target)])
    if cached:
        # A cache that cannot be written costs time, nothing else.
        with contextlib.suppress(CacheError):
            write(artifact, place)
    return artifact


def _key(lowered: Lowered, target: Target) -> str:
    """A name made of everything that decides the content of the binaries."""
    import triton

    from boleir.codegen.artifact_folder import FORMAT
    from boleir.codegen.interface import interface_of
    from boleir.codegen.topology import topology_source

    specs = [repr(spec) for spec in lowered.specs()]
    ptxas = os.environ.get("TRITON_PTXAS_PATH", "")
    texts = [lowered.text, topology_source()]
    face = interface_of(lowered).to_json()  # kept beside the binaries
    content = [FORMAT, triton.__version__, ptxas, target.name, texts, specs, face]
    return f"{lowered.plan.name}-{hashlib.sha256(dump(content)).hexdigest()[:24]}"
