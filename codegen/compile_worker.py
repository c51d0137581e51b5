"""The process that runs the compiler, so that a crash or a hang in it harms nobody else.

Started by `boleir.codegen.offline` as a `WorkerProcess`. Triton is imported once per worker; what
it prints (whole assembly listings, on failure) does not reach the answers.

A request holds `source`, `kernel` (the fields of a `KernelSpec`) and `target` (Triton's triple). An
answer holds either `error` (`stage`, `text`, and `line` in the source where known) or the binary in
base64 with its assembly and what is known about it.
"""

from __future__ import annotations

import base64
import dataclasses
import hashlib
import importlib.util
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from boleir.codegen.binary_facts import (
    amd_usage,
    assembler_version,
    never_returns,
    nvidia_usage,
    other_assembler,
    parameter_count,
    scratch_sizes,
    unset_register_of,
)
from boleir.codegen.worker_process import serve


class Rejected(Exception):
    """A request that cannot be compiled: the stage that failed, one line of text, a source line."""

    def __init__(self, stage: str, text: str, line: int | None = None) -> None:
        super().__init__(text)
        self.stage = stage
        self.text = text
        self.line = line


def load_module(source: str, scratch: Path, loaded: dict[str, ModuleType]) -> ModuleType:
    """Import `source` from a file in `scratch`, once: Triton reads kernels from their file."""
    digest = hashlib.sha256(source.encode()).hexdigest()
    if digest in loaded:
        return loaded[digest]
    path = scratch / f"kernels_{digest[:16]}.py"
    path.write_text(source, encoding="utf-8")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except SyntaxError as error:
        raise Rejected("module", f"syntax error: {error.msg}", error.lineno) from error
    except Exception as error:
        raise Rejected("module", f"{type(error).__name__}: {first_line(error)}") from error
    loaded[digest] = module
    return module


def first_line(error: BaseException) -> str:
    """The first line of an error's text that says something."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), "no message")


def ast_source(function: Any, kernel: dict[str, Any]) -> Any:
    """Triton's description of one specialisation: types, constants, divisibility."""
    from triton.compiler import ASTSource

    names = list(function.arg_names)
    signature, constants = kernel["signature"], kernel["constants"]
    missing = [name for name in names if name not in signature and name not in constants]
    unknown = [name for name in (*signature, *constants) if name not in names]
    if missing or unknown:
        parts = [f"arguments without a type: {', '.join(missing)}"] if missing else []
        parts += [f"no such argument: {', '.join(unknown)}"] if unknown else []
        raise Rejected("specification", "; ".join(parts))
    types = {name: "constexpr" if name in constants else signature[name] for name in names}
    attributes = {
        (names.index(name),): [["tt.divisibility", 16]]
        for name in kernel["aligned"]
        if name in names
    }
    return ASTSource(function, types, dict(constants), attributes)


def compiler_options(kernel: dict[str, Any], backend: Any) -> dict[str, Any]:
    """Options for the backend; a name it does not know is refused, since it would be ignored."""
    options: dict[str, Any] = {
        "num_warps": kernel["num_warps"],
        "num_stages": kernel["num_stages"],
        "enable_fp_fusion": kernel["fp_fusion"],
    }
    if kernel["pdl"]:
        options["launch_pdl"] = True
    options.update(kernel["options"])
    # A bare parse would warn about the missing choice; naming it keeps standard error clean.
    known = {f.name for f in dataclasses.fields(backend.parse_options({"enable_fp_fusion": True}))}
    if kernel["max_registers"] and "maxnreg" in known:  # a matter of speed: AMD has no such option
        options["maxnreg"] = kernel["max_registers"]
    unknown = sorted(set(options) - known)
    if unknown:
        raise Rejected("specification", f"unknown compiler option: {', '.join(unknown)}")
    return options


def innermost(error: BaseException) -> BaseException:
    """The error at the bottom of a chain of calls between kernel functions."""
    while error.__cause__ is not None and type(error.__cause__) is type(error):
        error = error.__cause__
    return error


def explain(error: BaseException, source: str) -> Rejected:
    """One line for whatever the compiler raised."""
    from triton.compiler.errors import CompilationError

    if isinstance(error, Rejected):
        return error
    if isinstance(error, CompilationError):
        deepest: Any = innermost(error)
        text = getattr(deepest, "error_message", None) or (
            first_line(deepest.__cause__) if deepest.__cause__ else type(deepest).__name__
        )
        line = None
        start = source.find(deepest.src) if getattr(deepest, "src", None) else -1
        if start >= 0 and getattr(deepest, "node", None) is not None:
            line = source.count("\n", 0, start) + deepest.node.lineno
        return Rejected("translation", " ".join(str(text).split()), line)
    for line in str(error).splitlines():
        if re.search(r"\b(error|fatal)\b\s*:?", line) and "ptxas" in line and "failed" not in line:
            return Rejected("assembly", line.strip())
    return Rejected("lowering", f"{type(error).__name__}: {first_line(error)}")


def compile_one(request: dict[str, Any], scratch: Path, loaded: dict[str, Any]) -> dict[str, Any]:
    """Compile one kernel and report everything a manifest or a tuner wants to know about it."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler.compiler import make_backend

    started = time.perf_counter()
    kernel, (backend_name, arch, warp_size) = request["kernel"], request["target"]
    gpu = GPUTarget(backend_name, arch, warp_size)
    module = load_module(request["source"], scratch, loaded)
    function = getattr(module, kernel["name"], None)
    if not isinstance(function, triton.runtime.JITFunction):
        raise Rejected("specification", f"the module has no kernel called {kernel['name']}")
    options = compiler_options(kernel, make_backend(gpu))

    def translate() -> Any:
        return triton.compile(ast_source(function, kernel), target=gpu, options=options)

    kind, listing = ("cubin", "ptx") if backend_name == "cuda" else ("hsaco", "amdgcn")
    compiled = translate()
    if backend_name == "cuda" and never_returns(compiled.asm[listing]):
        raise Rejected(
            "lowering",
            f"Triton {triton.__version__} compiles it to a trap and nothing else: take another "
            "schedule, or another release of Triton",
        )
    assembler = assembler_version(backend_name, arch)
    if backend_name == "cuda":
        compiled, assembler = sound(compiled, assembler, arch, translate, scratch)
    binary, assembly = compiled.asm[kind], compiled.asm[listing]
    registers, spills = (
        nvidia_usage(binary, scratch) if backend_name == "cuda" else amd_usage(assembly)
    )
    facts = compiled.metadata
    return {
        "binary": base64.b64encode(binary).decode(),
        "assembly": assembly,
        "entry": facts.name,
        "shared": facts.shared,
        "num_warps": facts.num_warps,
        "scratch": scratch_sizes(facts),
        "parameters": parameter_count(assembly, backend_name),
        "registers": registers,
        "spills": spills,
        "tensor_memory": getattr(facts, "tmem_size", None) or 0,
        "triton": triton.__version__,
        "assembler": assembler,
        "seconds": time.perf_counter() - started,
    }


def sound(
    compiled: Any, assembler: str, arch: int, translate: Callable[[], Any], scratch: Path
) -> tuple[Any, str]:
    """`compiled` and the version of its assembler; from the toolkit's other assembler where the
    first one left a register unset. Refused where both do, or there is no other."""
    register = unset_register_of(compiled, scratch)
    if register is None:
        return compiled, assembler
    with other_assembler(arch) as found:
        if found:
            again = translate()
            if unset_register_of(again, scratch) is None:
                return again, assembler_version("cuda", arch)
    raise Rejected(
        "assembly",
        f"ptxas {assembler} leaves the uniform register {register} unset, with which results would "
        "be wrong: take another schedule, or name ptxas 12.9 or later in TRITON_PTXAS_PATH",
    )


def answer(request: dict[str, Any], scratch: Path, loaded: dict[str, Any]) -> dict[str, Any]:
    """Like `compile_one`, with every failure turned into an `error` answer."""
    try:
        return compile_one(request, scratch, loaded)
    except Exception as error:
        reason = explain(error, request["source"])
        return {"error": {"stage": reason.stage, "text": reason.text[:500], "line": reason.line}}


def without_cache_keys() -> None:
    """Triton names what it caches after the content of all its own files, hundreds of megabytes
    that every process reads anew; nothing is looked up in that cache here."""
    from triton.runtime import cache

    cache.triton_key = lambda: "one version"


def main() -> None:
    """Serve requests until standard input ends."""
    without_cache_keys()
    scratch = Path(sys.argv[1])
    loaded: dict[str, Any] = {}
    serve(lambda request: answer(request, scratch, loaded))


if __name__ == "__main__":
    main()
