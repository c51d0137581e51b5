"""Text to IR. The LALR parser calls the actions while it reads, so nothing is built twice and
nothing recurses.

`parse` reads one recurrence, `parse_module` any number of recurrences and tree declarations,
`parse_tree` one tree.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from threading import Lock
from typing import TypeVar

import lark

from boleir.functions import NAMES
from boleir.ir import Recurrence
from boleir.language.actions import Actions
from boleir.language.errors import BadSyntax, UnknownName, did_you_mean
from boleir.language.syntax_errors import explain
from boleir.language.text import prepare
from boleir.language.tree_spec import SPELLED, UNNAMED, TreeSpec

_Item = TypeVar("_Item", Recurrence, TreeSpec)

_LOCK = Lock()
"""One parse at a time: the parser tables are shared, and so are the actions bound to them."""


@dataclass(frozen=True, slots=True)
class Module:
    """What one text declares, in order."""

    name: str
    recurrences: tuple[Recurrence, ...]
    trees: tuple[TreeSpec, ...]

    def recurrence(self, name: str) -> Recurrence:
        """The recurrence called `name`. Raises `UnknownName` naming those that exist."""
        return _named(self.recurrences, name, "recurrence", self.name)

    def tree(self, name: str) -> TreeSpec:
        """The tree called `name`. Raises `UnknownName` naming those that exist."""
        return _named(self.trees, name, "tree", self.name)

    def __str__(self) -> str:
        from boleir.language.printer import print_module

        return print_module(self.recurrences, self.trees)


def parse(text: str, name: str = "<text>") -> Recurrence:
    """The one recurrence that `text` declares; messages show `name`. Raises a `SpecError`."""
    module = parse_module(text, name)
    if len(module.recurrences) != 1:
        raise BadSyntax(
            f"{name}: expected one recurrence, found {len(module.recurrences)}",
            mend="parse_module reads a text with several"
            if module.recurrences
            else "recurrence NAME(q: key, k: key, v: value)",
        )
    return module.recurrences[0]


def parse_tree(text: str, name: str = "<tree>") -> TreeSpec:
    """One tree: `tree NAME = chain(8)`, or the right-hand side alone. Raises a `SpecError`."""
    named = text.split(maxsplit=1)[:1] == ["tree"]
    trees = parse_module(text if named else f"tree {SPELLED} = {text}", name).trees
    if len(trees) != 1:
        raise BadSyntax(f"{name}: expected one tree, found {len(trees)}")
    return trees[0] if named else replace(trees[0], name=UNNAMED)


def parse_module(text: str, name: str = "<text>") -> Module:
    """Every recurrence and tree of `text`. Raises a `SpecError` for the first mistake."""
    prepared = prepare(text, name)
    with _LOCK:
        parser, actions = _parser()
        actions.begin(prepared)
        try:
            parser.parse(prepared.prepared)
        except lark.UnexpectedInput as error:
            raise explain(error, prepared) from None
        finally:
            recurrences, trees = actions.end()
    return Module(name, recurrences, trees)


@lru_cache(maxsize=1)
def _parser() -> tuple[lark.Lark, Actions]:
    actions = Actions()
    grammar = files("boleir.language").joinpath("grammar.lark").read_text(encoding="utf-8")
    parser = lark.Lark(
        grammar,
        parser="lalr",
        lexer="contextual",
        start="module",
        transformer=actions,
        lexer_callbacks={"NAME": _function_or_name},
        cache=False,
    )
    return parser, actions


def _function_or_name(token: lark.Token) -> lark.Token:
    return (
        lark.Token.new_borrow_pos("FUNCTION", token.value, token) if token.value in NAMES else token
    )


def _named(items: tuple[_Item, ...], name: str, noun: str, module: str) -> _Item:
    for item in items:
        if item.name == name:
            return item
    names = [item.name for item in items]
    mend = did_you_mean(name, names) or f"declared are: {', '.join(names) or 'none'}"
    raise UnknownName(f"{module}: no {noun} '{name}'", mend=mend)
