"""The Python front end: run an ordinary function once on symbolic values and keep what it computed.

    @bole.recurrence
    def retention(S: bole.State, q: bole.Key, k: bole.Key, v: bole.Value, *, gamma: bole.Head):
        S = gamma * S + k @ v.T
        return S, S.T @ q

The first parameter is the state, the other positional ones are the inputs of a token, keyword-only
ones the parameters of the layer. A parameter with a default is no input: it keeps its default and
may steer Python code. Helper functions, loops over Python values and closures work as always.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_type_hints, overload

from boleir.errors import Span
from boleir.ir import Input, Kind, Per, Previous, Recurrence
from boleir.language.assemble import check_inputs, check_name, finish
from boleir.language.errors import BadSignature, did_you_mean
from boleir.language.frames import parameter_spans, source_of
from boleir.language.python_errors import spoken
from boleir.language.symbols import Traced, value_of
from boleir.language.terms import Term

CUSTOMARY = {"q": Kind.KEY, "k": Kind.KEY, "v": Kind.VALUE, "a": Kind.HEAD, "b": Kind.HEAD}
"""Kinds of token inputs that need no annotation; parameters without one are head scalars."""

_SPELLED = {"head": Kind.HEAD, "key": Kind.KEY, "value": Kind.VALUE, "state": Kind.STATE}
_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)

Function = Callable[..., tuple[Any, ...]]


@overload
def recurrence(function: Function, /) -> Recurrence: ...
@overload
def recurrence(*, name: str | None = None) -> Callable[[Function], Recurrence]: ...
def recurrence(function: Function | None = None, /, *, name: str | None = None) -> Any:
    """Decorator: the recurrence that a Python function of `S, inputs..., *, parameters...`
    describes.

    The function returns the new state and the output, or several outputs behind it. Kinds come from
    the annotations `boleir.Key`, `boleir.Value`, `boleir.Head`; without one `q` and `k` are keys,
    `v` is a value, and `a`, `b` and all parameters are head scalars. Raises a `SpecError` that
    points at the line of the function.
    """
    if function is None:
        return lambda inner: trace(inner, name)
    return trace(function, name)


def trace(function: Function, name: str | None = None) -> Recurrence:
    """The recurrence that `function` describes, called `name` or like the function."""
    if not inspect.isfunction(function):
        raise BadSignature(
            f"a recurrence is made from a function, not from a {type(function).__name__}"
        )
    spans = parameter_spans(function)
    title = name if name is not None else function.__name__
    at = spans.get("")
    if not isinstance(title, str) or not title.isidentifier():
        raise BadSignature(
            f"'{title}' cannot name a recurrence", span=at, mend='@recurrence(name="...")'
        )
    check_name(title, at, what="a recurrence")
    _require_plain(function, at)
    with spoken():
        return _traced(function, title, spans)


def _traced(function: Function, title: str, spans: dict[str, Span]) -> Recurrence:
    """What `function` computes from its parameters."""
    at = spans.get("")
    state, inputs, constants = _signature(function, spans)
    check_inputs(inputs)
    positional = [Traced(Term(item)) for item in inputs if item.per is Per.TOKEN]
    named = {item.name: Traced(Term(item)) for item in inputs if item.per is Per.HEAD}
    result = function(
        Traced(Term(Previous(Kind.STATE, span=spans.get(state)))), *positional, **named, **constants
    )
    update, *outputs = _returned(result, title, at)
    return finish(
        title,
        inputs,
        value_of(update),
        [(value_of(output), _place(output) or at) for output in outputs],
        source=source_of(function.__code__.co_filename),
        name_span=at,
        update_span=_place(update) or at,
    )


def _require_plain(function: Function, at: Span | None) -> None:
    """Refuse a function whose call does not run it."""
    asynchronous = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if asynchronous or inspect.isgeneratorfunction(function):
        what = "is asynchronous" if asynchronous else "yields"
        raise BadSignature(
            f"'{function.__name__}' {what}, and a recurrence is computed at once",
            span=at,
            mend="def f(S, q, k, v): ... return S_new, out",
        )


def _signature(
    function: Function, spans: dict[str, Span]
) -> tuple[str, tuple[Input, ...], dict[str, Any]]:
    """Name of the state, the inputs, and the keyword-only parameters that keep their defaults."""
    parameters = list(inspect.signature(function).parameters.values())
    hints = _annotations(function)
    if not parameters or parameters[0].kind not in _POSITIONAL:
        raise BadSignature(
            "the first parameter must be the state",
            span=spans.get(""),
            mend="def f(S, q, k, v): ...",
        )
    state, *others = parameters
    stated = _kind_of(state, hints, spans)
    if stated not in (None, Kind.STATE):
        raise BadSignature(
            f"the first parameter is the state, but '{state.name}' is annotated otherwise",
            span=spans.get(state.name),
        )
    inputs: list[Input] = []
    constants: dict[str, Any] = {}
    for parameter in others:
        if parameter.kind not in (*_POSITIONAL, inspect.Parameter.KEYWORD_ONLY):
            stars = "**" if parameter.kind is inspect.Parameter.VAR_KEYWORD else "*"
            raise BadSignature(
                f"'{stars}{parameter.name}' names no input",
                span=spans.get(""),
                mend="list every input by its own name",
            )
        if parameter.default is not inspect.Parameter.empty:
            if parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
                raise BadSignature(
                    f"token input '{parameter.name}' has a default",
                    span=spans.get(parameter.name),
                    mend="constants are keyword-only: put it behind '*'",
                )
            constants[parameter.name] = parameter.default
            continue
        per = Per.HEAD if parameter.kind is inspect.Parameter.KEYWORD_ONLY else Per.TOKEN
        kind = _kind_of(parameter, hints, spans) or (
            Kind.HEAD if per is Per.HEAD else CUSTOMARY.get(parameter.name)
        )
        inputs.append(_input(parameter.name, kind, per, spans.get(parameter.name)))
    return state.name, tuple(inputs), constants


def _input(name: str, kind: Kind | None, per: Per, span: Span | None) -> Input:
    if kind is None:
        raise BadSignature(
            f"input '{name}' has no kind",
            span=span,
            mend=f"{name}: boleir.Head, boleir.Key or boleir.Value",
        )
    if kind is Kind.STATE:
        raise BadSignature(
            f"'{name}' is annotated as a state, but only the first parameter is one", span=span
        )
    return Input(kind, name, per, span=span)


def _annotations(function: Function) -> dict[str, Any]:
    """Resolved annotations; the raw ones where a name in them cannot be resolved from here."""
    try:
        return get_type_hints(function, include_extras=True)
    except (
        Exception
    ):  # an annotation may hold any expression, and evaluating it may fail in any way
        return dict(function.__annotations__)


def _kind_of(
    parameter: inspect.Parameter, hints: dict[str, Any], spans: dict[str, Span]
) -> Kind | None:
    """Kind that an annotation states, None when there is no annotation."""
    if parameter.name not in hints:
        return None
    hint = hints[parameter.name]
    for candidate in (hint, *get_args(hint)):
        if isinstance(candidate, Kind):
            return candidate
        if isinstance(candidate, str):
            word = candidate.strip("'\"").rpartition(".")[2].lower()
            if word in _SPELLED:
                return _SPELLED[word]
    shown = hint if isinstance(hint, str) else getattr(hint, "__name__", str(hint))
    raise BadSignature(
        f"annotation '{shown}' of '{parameter.name}' is no kind",
        span=spans.get(parameter.name),
        mend=did_you_mean(shown, ["Head", "Key", "Value", "State"])
        or "boleir.Head, boleir.Key, boleir.Value or boleir.State",
    )


def _returned(result: object, title: str, at: Span | None) -> tuple[Traced, ...]:
    """The new state and the outputs that a function has returned."""
    given = tuple(result) if isinstance(result, (tuple, list)) else (result,)
    if len(given) >= 2 and all(isinstance(x, Traced) for x in given):
        return given
    found = f"{len(given)} values" if isinstance(result, (tuple, list)) else type(result).__name__
    if len(given) >= 2:
        names = ["a traced value" if isinstance(x, Traced) else type(x).__name__ for x in given]
        found = " and ".join(names)
    raise BadSignature(
        f"'{title}' must return the new state and the output, not {found}",
        span=at,
        mend="return S_new, out",
    )


def _place(traced: Traced) -> Span | None:
    value = value_of(traced)
    return value.expr.span if isinstance(value, Term) else None
