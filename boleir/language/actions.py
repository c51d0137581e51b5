"""What each grammar rule does. Called by the LALR parser while it reads, innermost first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

from lark import Token, Transformer, v_args

from boleir.errors import Span, TreeError
from boleir.functions import FUNCTIONS
from boleir.ir import Input, Kind, Number, Per, Recurrence
from boleir.language import build, tree_spec
from boleir.language.assemble import check_inputs, check_name, finish, normal_name
from boleir.language.errors import (
    BadArguments,
    BadConstant,
    BadSyntax,
    BadTree,
    DuplicateName,
    UnknownKind,
    UnknownName,
    did_you_mean,
)
from boleir.language.operators import Meaning
from boleir.language.scope import Scope
from boleir.language.terms import Term
from boleir.language.text import Text

MAX_DIGITS = 400
"""Longest number that is read."""
_INPUT_KINDS = {str(kind): kind for kind in (Kind.HEAD, Kind.KEY, Kind.VALUE)}
_KINDS_MEND = "kinds are head (one number per head), key (d_k numbers) and value (d_v numbers)"


class Node(NamedTuple):
    """A value, or the list that a mapped function gives, and where it stands (offsets into the
    text).
    """

    values: tuple[Meaning, ...]
    start: int
    end: int


class Keyword(NamedTuple):
    """A named argument."""

    name: Token
    node: Node


@v_args(inline=True)
class Actions(Transformer[Token, Any]):
    """The actions and, between `begin` and `end`, what they have gathered from one text."""

    def begin(self, text: Text) -> None:
        """Forget everything and read `text` next."""
        self.text = text
        self.scope: Scope | None = None
        self.recurrences: list[Recurrence] = []
        self.trees: list[tree_spec.TreeSpec] = []
        self.declared: dict[tuple[str, str], Span] = {}

    def end(self) -> tuple[tuple[Recurrence, ...], tuple[tree_spec.TreeSpec, ...]]:
        """What was declared."""
        gathered = tuple(self.recurrences), tuple(self.trees)
        self.recurrences, self.trees, self.scope = [], [], None
        return gathered

    # declarations

    def signature(self, name: Token, tokens: list[tuple[Token, Token | None]], *rest: Any) -> None:
        parameters = rest[1] if len(rest) > 1 else []
        inputs = [self._input(item, kind, Per.TOKEN) for item, kind in tokens]
        inputs += [self._input(item, kind, Per.HEAD) for item, kind in parameters]
        check_name(normal_name(name), self._at(name), what="a recurrence")
        check_inputs(inputs)
        self._declare("recurrence", name)
        self.scope = Scope(normal_name(name), self._at(name), tuple(inputs))

    def inputs(self, *items: tuple[Token, Token | None]) -> list[tuple[Token, Token | None]]:
        return list(items)

    def input(self, name: Token, kind: Token | None = None) -> tuple[Token, Token | None]:
        return name, kind

    def recurrence(self, *_: Any) -> None:
        scope = self._scope()
        recurrence = finish(
            scope.name,
            scope.inputs,
            scope.state if scope.update_span else None,
            scope.outputs,
            source=self.text.source,
            name_span=scope.name_span,
            update_span=scope.update_span,
        )
        scope.check_read()
        self.recurrences.append(recurrence)

    # statements

    def assignment(self, targets: list[Token], values: list[Node]) -> None:
        given = [value for node in values for value in node.values]
        if len(given) != len(targets):
            raise BadSyntax(
                f"{_count(len(targets), 'name')} for {_count(len(given), 'value')}",
                span=self.text.span(values[0].start, values[-1].end),
            )
        names = [normal_name(target) for target in targets]
        for place, (target, name) in enumerate(zip(targets, names, strict=True)):
            if name in names[:place]:
                raise DuplicateName(
                    f"'{name}' is assigned twice in one statement", span=self._at(target)
                )
        for target, name, value in zip(targets, names, given, strict=True):
            self._scope().bind(name, value, self._at(target))

    def targets(self, *names: Token) -> list[Token]:
        return list(names)

    def values(self, *nodes: Node) -> list[Node]:
        return list(nodes)

    def readout(self, word: Token, node: Node) -> None:
        self._scope().outputs.append((self._one(node), self._span(node)))

    # expressions

    def add(self, left: Node, right: Node) -> Node:
        return self._binary(build.add, left, right)

    def sub(self, left: Node, right: Node) -> Node:
        return self._binary(build.subtract, left, right)

    def mul(self, left: Node, right: Node) -> Node:
        return self._binary(build.multiply, left, right)

    def div(self, left: Node, right: Node) -> Node:
        return self._binary(build.divide, left, right)

    def juxtapose(self, left: Node, right: Node) -> Node:
        if left.end == right.start and _is_number(left) and _is_number(right):
            digits = self.text.prepared[left.start : right.end]
            if "(" not in digits:  # (2)(3) is a product, 1.2.3 a slip
                span = self.text.span(left.start, right.end)
                raise BadConstant(f"'{digits}' is not a number", span=span)
        return self._binary(build.juxtapose, left, right)

    def neg(self, minus: Token, node: Node) -> Node:
        start, end = minus.start_pos or 0, node.end
        return Node((build.negate(self._one(node), self.text.span(start, end)),), start, end)

    def transpose(self, node: Node, mark: Token) -> Node:
        return Node((build.transpose(self._one(node)),), node.start, mark.end_pos or 0)

    def group(self, left: Token, node: Node, right: Token) -> Node:
        return Node(node.values, left.start_pos or 0, right.end_pos or 0)

    def name(self, token: Token) -> Node:
        return self._leaf(self._scope().look_up(normal_name(token), self._at(token)), token)

    def number(self, token: Token) -> Node:
        return self._leaf(build.constant(self._fraction(token), self._at(token)), token)

    def call(
        self, function: Token, _left: Token, arguments: list[Node | Keyword], right: Token
    ) -> Node:
        span = self.text.span(function.start_pos or 0, right.end_pos or 0)
        given = [value for item in arguments if isinstance(item, Node) for value in item.values]
        named = self._by_name(item for item in arguments if isinstance(item, Keyword))
        results = self._called(str(function), given, named, span)
        return Node(tuple(results), function.start_pos or 0, right.end_pos or 0)

    def arguments(self, *items: Node | Keyword) -> list[Node | Keyword]:
        return list(items)

    def keyword(self, name: Token, node: Node) -> Keyword:
        return Keyword(name, node)

    # trees

    def tree(self, name: Token, maker: Token, _left: Token, *rest: Any) -> None:
        check_name(normal_name(name), self._at(name), what="a tree")
        self._declare("tree", name)
        entries: list[tuple[Token | None, int, Token]] = [
            item for item in rest if isinstance(item, tuple)
        ]
        self.trees.append(self._tree(normal_name(name), maker, entries))

    def entry(self, *tokens: Token) -> tuple[Token | None, int, Token]:
        number = tokens[-1]
        value = self._fraction(number)
        if value.denominator != 1:
            raise BadTree("trees are described by whole numbers", span=self._at(number))
        negative = any(token.type == "MINUS" for token in tokens)
        return (
            tokens[0] if tokens[0].type == "NAME" else None,
            -int(value) if negative else int(value),
            number,
        )

    def _tree(
        self, name: str, maker: Token, entries: list[tuple[Token | None, int, Token]]
    ) -> tree_spec.TreeSpec:
        makers: dict[str, tuple[Callable[..., tree_spec.TreeSpec], tuple[str, ...] | None]] = {
            "chain": (tree_spec.chain, ("nodes",)),
            "beam": (tree_spec.beam, ("width", "depth")),
            "dynamic": (tree_spec.dynamic, ("nodes", "depth")),
            "parents": (tree_spec.parents, None),
        }
        if maker not in makers:
            mend = did_you_mean(maker, makers) or f"trees are {', '.join(sorted(makers))}"
            raise UnknownName(f"unknown kind of tree '{maker}'", span=self._at(maker), mend=mend)
        make, wanted = makers[str(maker)]
        try:
            if wanted is None:
                self._check_positional(maker, entries)
                return make(*(value for _, value, _ in entries), name=name)
            found = dict(zip(wanted, (value for _, value, _ in entries), strict=False))
            labels = [
                str(label or place) for place, (label, _, _) in zip(wanted, entries, strict=False)
            ]
            if sorted(labels) != sorted(wanted) or len(entries) != len(wanted):
                mend = f"{maker}({', '.join(f'{word}=...' for word in wanted)})"
                raise BadTree(
                    f"{maker} needs {' and '.join(wanted)}", span=self._at(maker), mend=mend
                )
            found = {label: value for label, (_, value, _) in zip(labels, entries, strict=True)}
            return (
                tree_spec.chain(found["nodes"], name=name)
                if maker == "chain"
                else make(**found, name=name)
            )
        except TreeError as error:
            at = (
                entries[error.node][2]
                if error.node is not None and error.node < len(entries)
                else maker
            )
            raise BadTree(str(error.message), span=self._at(at), mend=error.mend) from None

    def _check_positional(
        self, maker: Token, entries: list[tuple[Token | None, int, Token]]
    ) -> None:
        for label, _, _ in entries:
            if label is not None:
                raise BadTree(
                    f"{maker} takes the parents in order, without names",
                    span=self._at(label),
                    mend="parents(-1, 0, 0, 1)",
                )

    # helpers

    def _scope(self) -> Scope:
        assert self.scope is not None  # the grammar puts a signature before every statement
        return self.scope

    def _at(self, token: Token) -> Span:
        return self.text.span(token.start_pos or 0, token.end_pos or 0)

    def _span(self, node: Node) -> Span:
        return self.text.span(node.start, node.end)

    def _leaf(self, value: Meaning, token: Token) -> Node:
        return Node((value,), token.start_pos or 0, token.end_pos or 0)

    def _one(self, node: Node) -> Meaning:
        if len(node.values) != 1:
            raise BadSyntax(
                f"a list of {len(node.values)} values stands where one value belongs",
                span=self._span(node),
                mend="assign it to as many names: a, b = ...",
            )
        return node.values[0]

    def _binary(
        self, rule: Callable[[Meaning, Meaning, Span], Meaning], left: Node, right: Node
    ) -> Node:
        span = self.text.span(left.start, right.end)
        return Node((rule(self._one(left), self._one(right), span),), left.start, right.end)

    def _by_name(self, items: Iterable[Keyword]) -> dict[str, Keyword]:
        named: dict[str, Keyword] = {}
        for item in items:
            if str(item.name) in named:
                raise BadArguments(f"'{item.name}' is given twice", span=self._at(item.name))
            named[str(item.name)] = item
        return named

    def _called(
        self, name: str, given: list[Meaning], named: dict[str, Keyword], span: Span
    ) -> list[Meaning]:
        allowed = {"width"} if name == "causal_conv" else set()
        for label, item in named.items():
            if label not in allowed:
                mend = did_you_mean(label, allowed) or f"{name} takes no argument of that name"
                raise BadArguments(
                    f"{name} has no argument '{label}'", span=self._at(item.name), mend=mend
                )
        if name in ("dot", "outer", "diag"):
            wanted = 1 if name == "diag" else 2
            if len(given) != wanted:
                raise BadArguments(
                    f"{name} takes {_count(wanted, 'argument')}, not {len(given)}",
                    span=span,
                )
            if name == "diag":
                return [build.diagonal(given[0], span)]
            return [(build.dot if name == "dot" else build.outer)(given[0], given[1], span)]
        if not given:
            raise BadArguments(f"{name} needs an argument", span=span)
        if name == "causal_conv":
            width = self._whole(named["width"]) if "width" in named else None
            return [build.causal_conv(value, width, span) for value in given]
        assert name in FUNCTIONS
        return [build.call(name, value, span) for value in given]

    def _whole(self, item: Keyword) -> int | None:
        value = self._one(item.node)
        constant = (
            value.expr.value if isinstance(value, Term) and isinstance(value.expr, Number) else None
        )
        return int(constant) if constant is not None and constant.denominator == 1 else None

    def _fraction(self, token: Token) -> Fraction:
        digits, _, exponent = token.lower().partition("e")
        if len(token) > MAX_DIGITS or (
            exponent and (len(exponent) > 5 or abs(int(exponent)) > MAX_DIGITS)
        ):
            raise BadConstant(
                "the number is too long or its exponent too large", span=self._at(token)
            )
        try:
            return Fraction(str(token))
        except ValueError:
            raise BadConstant(f"'{digits}' is not a number", span=self._at(token)) from None

    def _input(self, name: Token, kind: Token | None, per: Per) -> Input:
        span, text = self._at(name), normal_name(name)
        if kind is None:
            raise UnknownKind(
                f"input '{text}' has no kind",
                span=span,
                mend=f"{text}: key, for example; {_KINDS_MEND}",
            )
        if str(kind) not in _INPUT_KINDS:
            raise UnknownKind(
                f"unknown kind '{kind}'",
                span=self._at(kind),
                mend=did_you_mean(kind, _INPUT_KINDS) or _KINDS_MEND,
            )
        return Input(_INPUT_KINDS[str(kind)], text, per, span=span)

    def _declare(self, noun: str, name: Token) -> None:
        key = (noun, normal_name(name))
        if key in self.declared:
            raise DuplicateName(
                f"{noun} '{key[1]}' is declared twice (first in line {self.declared[key].line})",
                span=self._at(name),
                mend="rename one",
            )
        self.declared[key] = self._at(name)


def _is_number(node: Node) -> bool:
    return isinstance(node.values[0], Term) and isinstance(node.values[0].expr, Number)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
