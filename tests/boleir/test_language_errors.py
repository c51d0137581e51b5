"""Every mistake has one message, word for word: what, where, a caret, and the mend."""

from __future__ import annotations

import textwrap

import pytest

from boleir.errors import SpecError
from boleir.language import errors
from boleir.language.parser import parse_module
from tests.boleir.mistakes_of_meaning import MEANING
from tests.boleir.mistakes_of_writing import HEADER, WRITING

MISTAKES = WRITING | MEANING


@pytest.mark.parametrize("case", MISTAKES)
def test_messages(case: str) -> None:
    kind, text, message = MISTAKES[case]
    with pytest.raises(SpecError) as caught:
        parse_module(text)
    assert str(caught.value) == textwrap.dedent(message).strip("\n")
    assert type(caught.value) is kind


def test_every_class_of_the_text_language_is_met() -> None:
    met = {kind for kind, _, _ in MISTAKES.values()}
    elsewhere = {  # files, limits, Python functions, the library
        "BadEncoding",
        "TextTooLong",
        "NestingTooDeep",
        "BadSignature",
        "ControlFlow",
        "UnsupportedOperation",
        "UnknownRecurrence",
    }
    every = {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, SpecError) and item is not SpecError
    }
    assert {item.__name__ for item in every - met} == elsewhere


def test_carets_survive_tabs_and_long_lines() -> None:
    with pytest.raises(SpecError) as caught:
        parse_module(HEADER + "\tS = exp(b) * S\n")
    assert str(caught.value).splitlines()[1:3] == ["     S = exp(b) * S", "             ^"]
    padding = "a + " * 100
    with pytest.raises(SpecError) as caught:
        parse_module(HEADER + f"  x = {padding}zzz + {padding}a\n")
    shown, caret = str(caught.value).splitlines()[1:3]
    assert shown[caret.index("^") :].startswith("zzz")
    assert len(shown) < 140


def test_a_message_names_the_file() -> None:
    with pytest.raises(SpecError, match=r"^dir/my\.bole:1:1: "):
        parse_module("x", "dir/my.bole")


def test_terminal_escapes_never_reach_the_message() -> None:
    for text in ("\x1b[2J", "x = \x1b]0;title\x07", "\u202e x"):
        with pytest.raises(SpecError) as caught:
            parse_module(HEADER + text)
        assert str(caught.value).replace("\n", "").isprintable()
