"""Recurrences and helpers that the tests of the derivation share."""

from __future__ import annotations

import re
from dataclasses import replace

import boleir as bole
from boleir.derive.assemble import assemble
from boleir.derive.normal_form import NormalForm
from boleir.derive.notation import plain


def form_of(body: str, inputs: str = "q: key, k: key, v: value, g: head, b: head") -> NormalForm:
    """The normal form of a recurrence given by its statements."""
    lines = "\n".join(f"  {line.strip()}" for line in body.strip().splitlines())
    return assemble(bole.parse(f"recurrence r({inputs})\n{lines}\n"))


def used_inputs(body: str, inputs: str) -> str:
    """Those declarations of a signature whose names occur in the statements."""
    declared = [item.strip() for item in inputs.split(",")]
    return ", ".join(
        x for x in declared if re.search(rf"(?<!\w){x.partition(':')[0]}(?![\w(])", body)
    )


def content(form: NormalForm) -> NormalForm:
    """The form without its origin, to compare different spellings."""
    empty = replace(form.recurrence, name="", inputs=())
    leaf = form.recurrence.inputs[0]
    return replace(form, recurrence=replace(empty, update=leaf, output=leaf))


def spelled(form: NormalForm) -> dict[str, object]:
    """The parts of a form as text."""
    return {
        "decay": plain(form.decay),
        "pairs": [
            (plain(p.write), plain(p.erase.vector), p.erase.after_decay, plain(p.target))
            for p in form.pairs
        ],
        "writes": [(plain(w.key), plain(w.value)) for w in form.writes],
        "query": (plain(form.readout.query.vector), form.readout.query.after_decay),
    }
