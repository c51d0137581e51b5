"""Triton's interpreter without work that it does again and again, for children of tests.

Functions that kernels call, sums among them, have the interpreter replace the whole language in
its modules on every call, though a launch has done so already; and every addition and product of
integers is computed twice to see that it does not overflow, after which addresses would be wrong
anyway. Together that is a third of the time that kernels take.
"""

from __future__ import annotations

import runpy
import sys
from dataclasses import replace
from typing import Any


def install() -> None:
    """Change the interpreter of this process."""
    import triton.language as tl
    from triton.runtime import interpreter

    replace_language, launch = interpreter._patch_lang, interpreter.GridExecutor.__call__
    replaced: set[tuple[int, ...]] = set()
    builder = interpreter.interpreter_builder

    def replace_once(function: Any) -> Any:
        seen = function.__globals__.values()
        modules = tuple(id(x) for x in seen if x is tl or x is tl.core)
        if modules in replaced:
            return None  # calls inside a kernel do not undo it
        replaced.add(modules)
        return replace_language(function)

    def launched(self: Any, *arguments: Any, **named: Any) -> None:
        replaced.clear()
        launch(self, *arguments, **named)

    interpreter._patch_lang = replace_once
    interpreter.GridExecutor.__call__ = launched
    builder.options = replace(builder.options, sanitize_overflow=False)


def main() -> None:
    """Run a script, or `-m` a module, in an interpreter so changed: `python -m` with this one."""
    install()
    del sys.argv[0]
    if sys.argv[0] == "-m":
        del sys.argv[0]
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
    else:
        runpy.run_path(sys.argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
