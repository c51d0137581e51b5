"""Triton's interpreter without work that it does again and again, for children of tests.

Functions that kernels call, sums among them, have the interpreter replace the whole language in
its modules on every call, though a launch has done so already; and every addition and product of
integers is computed twice to see that it does not overflow, after which addresses would be wrong
anyway. The types of tiles, which are few, and how two shapes fit are made and checked for every
result. A kernel's text is looked for three times, token by token, before it is parsed. What remains
of an operator, `tests.remembered_operators` keeps. Together that is two thirds of the time that
kernels take; no bit of what they compute changes.
"""

from __future__ import annotations

import ast
import runpy
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests.remembered_operators import Operators


def install() -> None:
    """Change the interpreter of this process."""
    import triton.language as tl
    from triton.runtime import interpreter

    _replace_language_once(tl, interpreter)
    _remember_types(tl.core, interpreter)
    _remember_shapes(interpreter)
    _parse_files_once(interpreter)
    Operators(tl.core, interpreter)
    builder = interpreter.interpreter_builder
    builder.options = replace(builder.options, sanitize_overflow=False)


def _replace_language_once(tl: Any, interpreter: Any) -> None:
    replace_language, launch = interpreter._patch_lang, interpreter.GridExecutor.__call__
    replaced: set[tuple[int, ...]] = set()

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


def _remember_types(core: Any, interpreter: Any) -> None:
    """A type of tiles is made once for its elements and its shape, with what follows from it."""
    make_type, make_tensor = core.block_type.__init__, core.tensor.__init__
    made: dict[tuple[Any, ...], dict[str, Any]] = {}
    shapes: dict[str, tuple[Any, Any]] = {}
    numpy_type, numpy_types = interpreter._get_np_dtype, {}

    def block_type(self: Any, element_ty: Any, shape: Any) -> None:
        sizes = [x.value if type(x) is core.constexpr else x for x in shape]
        key = (element_ty.name, *sizes)
        if key not in made:
            make_type(self, element_ty, shape)
            made[key] = self.__dict__
        self.__dict__ = made[key]

    def tensor(self: Any, handle: Any, type: Any) -> None:
        name = type.name
        if name not in shapes:
            make_tensor(self, handle, type)
            shapes[name] = (self.shape, self.numel)
        self.handle, self.type, self.dtype = handle, type, type.scalar
        self.shape, self.numel = shapes[name]

    def np_dtype(dtype: Any) -> Any:
        if dtype.name not in numpy_types:
            numpy_types[dtype.name] = numpy_type(dtype)
        return numpy_types[dtype.name]

    core.block_type.__init__, core.tensor.__init__ = block_type, tensor
    interpreter._get_np_dtype = np_dtype


def _remember_shapes(interpreter: Any) -> None:
    """How tiles of two types are brought to one shape is found once."""
    semantic, handle = interpreter.interpreter_semantic, interpreter.TensorHandle
    fit, builder = semantic.broadcast_impl_value, semantic.builder
    fits: dict[tuple[str, str], tuple[Any, Any]] = {}

    def spread(tile: Any, type: Any) -> Any:
        if type is None:
            return tile
        if not tile.type.is_block():
            return semantic.make_tensor(builder.create_splat(type, tile.handle), type)
        data = np.broadcast_to(tile.handle.data, type.shape.values)
        return semantic.make_tensor(handle(data, tile.handle.dtype.scalar), type)

    def broadcast_impl_value(left: Any, right: Any) -> tuple[Any, Any]:
        key = (left.type.name, right.type.name)
        if key not in fits:
            found = fit(left, right)
            pairs = zip(found, (left, right), strict=True)
            one, other = (None if new is old else new.type for new, old in pairs)
            fits[key] = (one, other)
            return found
        one, other = fits[key]
        return spread(left, one), spread(right, other)

    semantic.broadcast_impl_value = broadcast_impl_value


def _parse_files_once(interpreter: Any) -> None:
    """Functions are taken from their file's tree, where they have their lines already."""
    rewriter = interpreter.FunctionRewriter
    plain = rewriter.rewrite_ast
    texts: dict[str, tuple[str, dict[tuple[str, int], ast.FunctionDef]]] = {}

    def functions(path: str) -> dict[tuple[str, int], ast.FunctionDef]:
        text = Path(path).read_text(encoding="utf-8")
        if path not in texts or texts[path][0] != text:
            found = [x for x in ast.parse(text).body if isinstance(x, ast.FunctionDef)]
            first = {x: min(x.lineno, *(y.lineno for y in x.decorator_list)) for x in found}
            texts[path] = (text, {(x.name, first[x]): x for x in found})
        return texts[path][1]

    def rewrite_ast(self: Any) -> Any:
        code = self.fn.__code__
        known = functions(code.co_filename) if Path(code.co_filename).is_file() else {}
        node = known.pop((code.co_name, code.co_firstlineno), None)  # it is changed in place
        if node is None:
            return plain(self)
        self.filename, node.decorator_list = code.co_filename, []
        changed = self.ast_transformer.visit(ast.Module([node], []))
        return self._compile_and_exec(ast.fix_missing_locations(changed))

    rewriter.rewrite_ast = rewrite_ast


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
