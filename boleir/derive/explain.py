"""The derivation of one recurrence, written out: its lemmas, theorem and commit in its own
symbols."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap

from boleir.derive.closed_form import ClosedForm
from boleir.derive.formulas import Formulas
from boleir.derive.notation import LATEX, TEXT
from boleir.derive.recent import Recent
from boleir.derive.work import bounded

WIDTH = 100
"""Columns of the text."""

_EXPLAINED: Recent[int, tuple[ClosedForm, str]] = Recent(64)
"""Texts by identity of the form, which every module that is emitted from it begins with."""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading, formulas of one line each, and a sentence that says why."""

    title: str
    formulas: tuple[str, ...]
    why: str = ""
    prose: bool = False
    """Whether the lines are sentences or drawings."""


def explain(form: ClosedForm, fmt: str = "text", tree: Sequence[int] | None = None) -> str:
    """See `ClosedForm.explain`. Raises ValueError for an unknown `fmt`, `TooComplicated` for what
    nobody could read."""
    if fmt not in ("text", "latex"):
        raise ValueError(f"unknown format '{fmt}': use 'text' or 'latex'")
    plain = fmt == "text" and tree is None
    known = _EXPLAINED.get(id(form)) if plain else None
    if known is not None and known[0] is form:
        return known[1]
    mend = "a smaller tree" if tree is not None else "name the terms that occur more than once"
    span = form.recurrence.update.span if tree is None else None
    with bounded("the explanation", mend, span):
        text = _explain(form, fmt, tree)
    if plain:
        _EXPLAINED.put(id(form), (form, text))
    return text


def _explain(form: ClosedForm, fmt: str, tree: Sequence[int] | None) -> str:
    formulas = Formulas(form, LATEX if fmt == "latex" else TEXT)
    sections = _sections(form, formulas)
    if tree is not None:
        from boleir.derive.entries import tree_sections

        sections += tree_sections(form, formulas.style, tree)
    return _latex(form, sections) if fmt == "latex" else _text(form, sections)


def _sections(form: ClosedForm, f: Formulas) -> list[Section]:
    solve = bool(form.G)
    sections = [
        Section("Symbols", (*f.definitions(), *f.conventions())),
        Section("One token", f.token()),
        Section("Lemma 1 (path factorisation)", f.lemma_path(), _WHY_PATH),
    ]
    if solve:
        sections += [
            Section("Lemma 2 (masked system)", f.lemma_system(), _WHY_SYSTEM),
            Section("Lemma 3 (nilpotent inverse)", f.lemma_inverse(), _why_inverse(form)),
        ]
    sections += [
        Section("Theorem", f.theorem(), _WHY_THEOREM if solve else _WHY_DIRECT),
        *(
            Section(f"Theorem, output {n}", Formulas(other, f.style).theorem())
            for n, other in enumerate(form.more, 2)
        ),
        Section("Commit", f.commit(), _WHY_COMMIT),
        Section("Class", tuple(form.classes), prose=True),
    ]
    if form.assumptions:
        sections.append(Section("Assumes", form.assumptions, prose=True))
    return sections


_WHY_PATH = (
    "Unrolled along the root path: a later decay multiplies every earlier term once, and a node "
    "off the path contributes nothing."
)
_WHY_SYSTEM = (
    "Lemma 1 for the parent, put into the definition of the unknowns; only strict ancestors occur."
)
_WHY_THEOREM = "Lemma 1, read by the output, with the unknowns of Lemmas 2 and 3."
_WHY_DIRECT = "Lemma 1, read by the output: nothing is unknown, so there is no system to solve."
_WHY_COMMIT = "Lemma 1 at the accepted node; rejected branches leave nothing behind."


def _why_inverse(form: ClosedForm) -> str:
    steps = form.nilpotency.per_level
    if steps > 1:
        text = (
            "An entry of G^m sums over chains of m steps, each to an earlier pair on the path: "
            f"at most {steps} pairs per node and d + 1 nodes."
        )
    else:
        text = (
            "An entry of G^m sums over chains of m steps, each to a strict ancestor, and a tree of "
            "depth d has none with d + 1."
        )
    return text + " G is strictly lower triangular, so det(I + G) = 1 for every tree."


def _text(form: ClosedForm, sections: list[Section]) -> str:
    lines = [f"{form.name}: closed form over a proposal tree"]
    for section in sections:
        lines += ["", section.title]
        for formula in section.formulas:
            for line in formula.split("\n"):
                lines += _broken(f"  {line}")
        if section.why:
            lines += wrap(f"({section.why})", WIDTH, initial_indent="  ", subsequent_indent="   ")
    return "\n".join(lines) + "\n"


def _broken(line: str) -> list[str]:
    """A line cut at blanks where it is too long, its continuation indented."""
    if len(line) <= WIDTH:
        return [line]
    return wrap(line, WIDTH, subsequent_indent="      ", break_long_words=False)


def _latex(form: ClosedForm, sections: list[Section]) -> str:
    name = form.name.replace("_", r"\_")
    lines = [rf"\section*{{Closed form of \texttt{{{name}}} over a proposal tree}}"]
    for section in sections:
        lines += ["", rf"\paragraph{{{section.title}}}"]
        math = [x for x in section.formulas if not section.prose and _is_formula(x)]
        words = [x for x in section.formulas if section.prose or not _is_formula(x)]
        if math:
            body = " \\\\\n".join(f"  & {x}" for x in math)
            lines += [r"\begin{align*}", body, r"\end{align*}"]
        lines += [f"{_escaped(x)}\\par" if "\n" not in x else _verbatim(x) for x in words]
        if section.why:
            lines.append(_escaped(section.why))
    return "\n".join(lines) + "\n"


def _is_formula(text: str) -> bool:
    """Formulas come with LaTeX commands; sentences and drawings do not."""
    return "\\" in text or ("=" in text and "\n" not in text)


def _verbatim(text: str) -> str:
    return f"\\begin{{verbatim}}\n{text}\n\\end{{verbatim}}"


def _escaped(text: str) -> str:
    """A sentence for LaTeX; what is a formula in it is set as one."""
    for plain, shown in _IN_SENTENCES:
        text = text.replace(plain, shown)
    return text


_IN_SENTENCES = (
    ("_", r"\_"),
    ("(I + G)^-1", "$(I + G)^{-1}$"),
    ("det(I + G) = 1", r"$\det(I + G) = 1$"),
    ("G^m", "$G^m$"),
    ("G = 0", "$G = 0$"),
    ("d + 1", "$d + 1$"),
)
