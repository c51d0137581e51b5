"""Scalars of a token that depend on the layer's scalars alone, for all tokens of the path at once.

Gates and write strengths take dozens of instructions each, which every thread would repeat for
every token. Here a lane has a step of the path, and the loop over the path picks what it needs.
"""

from __future__ import annotations

from collections.abc import Iterator

from boleir.codegen.emit.commit_inputs import step_expressions
from boleir.codegen.emit.commit_table import pointer, table_columns
from boleir.codegen.emit.commit_token import Token
from boleir.codegen.emit.context import place
from boleir.codegen.emit.text import arithmetic
from boleir.codegen.naming import stem
from boleir.codegen.rewrite import constant_value, is_constant
from boleir.ir import Call, Expr, Input, Kind, Per, walk


def emit_scalars(token: Token) -> None:
    """Vectors over the path; the token's scalars are picked out of them from here on."""
    plan, w = token.context.plan, token.writer
    scalars = _Scalars(token)
    if plan.log_decay is not None and _on_path(plan.log_decay):
        w.origin("decay", place(plan.log_decay, plan.form.decay))
        token.gates = w.temp(f"tl.exp({scalars.vector(plan.log_decay)})", "gates")
    for expr in step_expressions(plan, stored="unknowns" in table_columns(token.context)):
        for scalar in _largest(expr):
            token.path[scalar.key] = scalars.named(scalar)


class _Scalars:
    def __init__(self, token: Token) -> None:
        self.token = token
        self.known: dict[int, str] = {}

    def named(self, expr: Expr, text: str | None = None) -> str:
        """A vector with a name of its own."""
        text = text or self.vector(expr)
        if not text.isidentifier():
            text = self.known[expr.key] = self.token.writer.temp(text, f"{stem(expr)}_path")
        return text

    def vector(self, expr: Expr) -> str:
        """A scalar of all steps: text."""
        if is_constant(expr):
            return repr(constant_value(expr, self.token.context.dims))
        if expr.key not in self.known:
            text = self.known[expr.key] = self._node(expr)
            if isinstance(expr, Call) or expr.hint:
                return self.named(expr, text)
        return self.known[expr.key]

    def _node(self, expr: Expr) -> str:
        w = self.token.writer
        if not isinstance(expr, Input):
            return arithmetic(expr, self.vector, w)
        if expr.per is not Per.TOKEN:
            return self.token.parameter(expr)
        first = pointer(self.token.context, w, expr.name, self.token.context.dtype)
        at = f"{first} + (first + nodes) * {w.arg(f'{expr.name}_stride', 'i64')} + head"
        load = f"tl.load({at}, mask=steps < length, other=0.0)"
        return w.temp(f"{load}.to(tl.float32)", f"{expr.name}_path")


def _largest(expr: Expr) -> Iterator[Expr]:
    """The largest parts of an expression that depend on the token's scalars alone."""
    if _on_path(expr):
        yield expr
        return
    for child in expr.children:
        yield from _largest(child)


def _on_path(expr: Expr) -> bool:
    inputs = [node for node in walk(expr) if isinstance(node, Input)]
    scalars = expr.kind is Kind.HEAD and all(x.kind is Kind.HEAD for x in inputs)
    return scalars and any(x.per is Per.TOKEN for x in inputs)
