"""What to say when the words come in an order the grammar does not know."""

from __future__ import annotations

import lark

from boleir.errors import Span, SpecError
from boleir.language.errors import BadCharacter, BadSyntax, ReservedName, did_you_mean
from boleir.language.text import Text

_SPELLED = {
    "NAME": "a name",
    "EQUAL": "'='",
    "COMMA": "','",
    "COLON": "':'",
    "SEMICOLON": "';'",
    "LPAR": "'('",
    "RPAR": "')'",
    "_NL": "the end of the line",
    "$END": "the end of the text",
    "NUMBER": "a number",
    "MINUS": "'-'",
    "OUT": "'out'",
}
_OPERATORS = {"PLUS", "STAR", "SLASH", "AT", "TRANSPOSE"}
_DECLARATION = "declarations are: recurrence NAME(inputs; parameters), tree NAME = ..."
_PASTED = {
    "\u2212": "-",
    "\u2013": "-",
    "\u00b7": "*",
    "\u22c5": "*",
    "\u00d7": "*",
    "\u2299": "*",
    "\u2218": "*",
    "\u00f7": "/",
    "\u2032": "'",
    "\u2019": "'",
    "\u2297": "outer(k, v), or k v^T",
}
"""Characters of papers and word processors, and what is written here instead."""
_FOREIGN = {
    "+": "write S = S + ...",
    "-": "write S = S - ...",
    "*": "write S = ... * S",
    "/": "write x = x / ...",
}


def explain(error: lark.UnexpectedInput, text: Text) -> SpecError:
    """The error of boleir for an error of the parser."""
    if isinstance(error, lark.UnexpectedToken):
        previous = error.token_history[-1] if error.token_history else None
        return _unexpected_word(error.token, previous, set(error.accepts or error.expected), text)
    at = min(error.pos_in_stream or 0, max(0, len(text.source.text) - 1))
    return _unexpected_character(text, at)


def _unexpected_character(text: Text, at: int) -> SpecError:
    character, span = text.prepared[at], text.span(at, at + 1)
    if character == "^":
        return BadSyntax(
            "'^' stands for the transpose only: x^T",
            span=span,
            mend="a square is written square(x) or x * x",
        )
    if character in "[]{}":
        return BadSyntax(f"'{character}' has no meaning here", span=span, mend="group with ( and )")
    if character == ".":
        mend = "functions stand before what they are applied to: f(x)"
        return BadCharacter("unexpected character '.'", span=span, mend=mend)
    meant = _PASTED.get(character)
    return BadCharacter(
        f"unexpected character {character!r}", span=span, mend=meant and f"write {meant}"
    )


def _unexpected_word(
    word: lark.Token, previous: lark.Token | None, accepted: set[str], text: Text
) -> SpecError:
    if word.type == "$END":
        end = len(text.source.text.rstrip())
        return BadSyntax(
            f"the text ends too early; expected {_expected(accepted)}",
            span=text.span(max(0, end - 1), end),
        )
    span = text.span(word.start_pos or 0, word.end_pos or 0)
    if word.type == "FUNCTION" and "NAME" in accepted:
        return ReservedName(
            f"'{word}' is a function and cannot be a name", span=span, mend=f"call it '{word}_'"
        )
    if previous is not None and previous.type == "FUNCTION":
        return BadSyntax(
            f"function '{previous}' needs its argument in brackets",
            span=span,
            mend=f"{previous}(...)",
        )
    if accepted <= {"RECURRENCE", "TREE", "$END", "_NL"}:
        return BadSyntax(
            "expected a declaration",
            span=span,
            mend=did_you_mean(word, ["recurrence", "tree"]) or _DECLARATION,
        )
    if previous is not None and previous.type == "NAME" and accepted == {"EQUAL", "COMMA"}:
        return _bad_statement(word, previous, text)
    if previous is not None and previous.type == "OUT" and word == "=":
        return BadSyntax("'out' is followed by the output itself", span=span, mend="out S^T q")
    if word == "*" == previous:
        return BadSyntax(
            "there is no '**'", span=span, mend="a square is written square(x) or x * x"
        )
    if word == "=" == previous:
        return BadSyntax("there is no '=='", span=span, mend="a name is given by one '='")
    if word.type == "_NL":
        last = (word.start_pos or 0) - 1
        return BadSyntax(
            f"the line ends too early; expected {_expected(accepted)}",
            span=text.span(last, last + 1),
        )
    return BadSyntax(f"unexpected '{_cut(word)}'; expected {_expected(accepted)}", span=span)


def _bad_statement(word: lark.Token, name: lark.Token, text: Text) -> SpecError:
    """A line began with a name and went on neither with `=` nor with `,`."""
    at, start = word.start_pos or 0, name.start_pos or 0
    span: Span = text.span(start, name.end_pos or 0)
    if name in ("return", "output", "yield", "result"):
        return BadSyntax(
            f"'{name}' begins no statement", span=span, mend="the output is written: out S^T q"
        )
    if word in _FOREIGN and text.prepared[at + 1 : at + 2] == "=":
        mend = _FOREIGN[word].replace("S", name).replace("x", name)
        return BadSyntax(f"there is no '{word}='", span=text.span(at, at + 2), mend=mend)
    guess = did_you_mean(name, ["recurrence", "tree", "out"])
    return BadSyntax(
        f"expected '=' after '{_cut(name)}'",
        span=span,
        mend=guess or "statements are: name = expression, out expression",
    )


def _expected(accepted: set[str]) -> str:
    """The terminals in words, whole families summed up."""
    rest = set(accepted) - {"FUNCTION"}
    words = []
    if {"NAME", "NUMBER", "LPAR"} <= rest:
        words.append("an expression")
        rest -= {"NAME", "NUMBER", "LPAR", "MINUS"}
    if rest & _OPERATORS:
        words.append("an operator")
        rest -= _OPERATORS | {"MINUS"}
        if (
            "an expression" in words
        ):  # a juxtaposed factor may follow anything; naming it would only confuse
            words.remove("an expression")
    words += sorted(_SPELLED.get(item, f"'{item.lower()}'") for item in rest)
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _cut(word: str) -> str:
    return word if len(word) <= 40 else f"{word[:37]}..."
