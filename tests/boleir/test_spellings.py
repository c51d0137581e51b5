"""One closed form for many spellings of every shipped recurrence: mechanical rewrites."""

from __future__ import annotations

from functools import cache

import pytest

import boleir as bole
from boleir.derive.assemble import assemble
from boleir.derive.normal_form import NormalForm
from boleir.ir import Recurrence
from boleir.library import load_module
from tests.boleir.derive_support import content
from tests.boleir.rewrites import RULES, rewritten

SHIPPED = {item.name: item for name in bole.names() for item in load_module(name).recurrences}


@cache
def _form(name: str) -> NormalForm:
    return bare(assemble(SHIPPED[name]))


def bare(form: NormalForm) -> NormalForm:
    """What two spellings have to share."""
    return content(form)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", SHIPPED)
def test_rewritten(name: str, rule: str) -> None:
    assert bare(assemble(rewritten(SHIPPED[name], RULES[rule]))) == _form(name)


@pytest.mark.parametrize("name", SHIPPED)
def test_rewritten_several_times(name: str) -> None:
    recurrence: Recurrence = SHIPPED[name]
    for rule in ("distributed", "swapped", "expanded_reads", "gathered_writes", "quotients"):
        recurrence = rewritten(recurrence, RULES[rule])
    assert bare(assemble(recurrence)) == _form(name)


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_changes_something(rule: str) -> None:
    assert any(
        rewritten(item, RULES[rule]).update != item.update
        or rewritten(item, RULES[rule]).output != item.output
        for item in SHIPPED.values()
    )
