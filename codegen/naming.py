"""Names for what the source left without one, so that emitted code reads like what it computes."""

from __future__ import annotations

from boleir.ir import Call, Dot, Expr, Input, Mul, Per, walk


def is_name(text: str | None) -> bool:
    """Whether a hint can be used as a variable as it is."""
    return bool(text) and str(text).isidentifier() and str(text).isascii()


def stem(expr: Expr) -> str:
    """A name that says what an expression is: its own in the source, or its function and leaf."""
    if is_name(expr.hint):
        return str(expr.hint)
    match expr:
        case Input(name=name, per=per):
            return f"{name}_row" if per is Per.TOKEN else f"{name}_head"
        case Dot(left=left, right=right) if left == right:
            return f"square_{leaf(left)}"
        case Dot(left=left, right=right):
            return f"{leaf(left)}_dot_{leaf(right)}"
        case Call(fn=fn, arg=arg):
            return f"{fn}_{leaf(arg)}"
        case Mul():
            return f"scaled_{leaf(expr)}"
    return f"some_{leaf(expr)}"


def leaf(expr: Expr) -> str:
    """The name of an expression, or of an input it is made of, best one of its own kind."""
    inputs = [node for node in walk(expr) if isinstance(node, Input)]
    inputs.sort(key=lambda node: node.kind is not expr.kind)
    for node in (expr, *inputs):
        name = node.hint or getattr(node, "name", None)
        if is_name(name):
            return str(name)
    return "constant"
