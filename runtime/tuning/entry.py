"""One file of the store: a key, everything that was tried for it, and what was chosen."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import asdict, dataclass, replace
from typing import Any

from boleir.codegen.artifact import dump
from boleir.codegen.schedule import Schedule
from boleir.errors import BoleirError, CacheError
from boleir.runtime.tuning.choice import best
from boleir.runtime.tuning.environment import Environment
from boleir.runtime.tuning.keys import TuningKey

MISTAKES = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What values of the wrong kind or size raise."""


class InvalidEntry(CacheError):
    """A file that is no entry of this version; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one candidate: a time, or the reason why there is none."""

    schedule: Schedule
    source: str
    """Digest of the emitted text: a candidate whose kernels have changed since is tried again."""
    us: float | None = None
    """Microseconds of one layer, median; the policy says of what."""
    error: float | None = None
    """Worst error of a node over the inputs it was checked with, relative."""
    failure: str | None = None

    @property
    def ok(self) -> bool:
        """Whether there is a time."""
        return self.us is not None


@dataclass(frozen=True, slots=True)
class Policy:
    """How the candidates of an entry were measured; times under another policy do not compare."""

    stages: str = "verify+commit"
    """What a time covers: all kernels of a layer's verification, and its share of the commit."""
    replays: int = 15
    """Graph replays of which the median is taken."""
    working_set: int = 200_000_000
    """Bytes of states, in several layers: more than the caches hold."""
    cases: int = 4
    """Kinds of inputs that a candidate must compute correctly first."""
    tie: float = 0.02
    """Relative difference within which the simpler schedule is taken."""


NO_TUNING = "no tuning"
"""Begins the origin of an entry whose schedule was timed, but compared with no other."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Everything known about one key in one environment."""

    key: TuningKey
    environment: Environment
    policy: Policy
    outcomes: tuple[Outcome, ...] = ()
    origin: str = ""
    """What made the entry: version of boleir, or what else the times were taken from."""

    @property
    def tuned(self) -> bool:
        """Whether schedules were compared for this key; if not, mode `tune` still does that."""
        return not self.origin.startswith(NO_TUNING)

    @property
    def chosen(self) -> Schedule | None:
        """The fastest schedule, ties going to the simpler one; None if nothing worked."""
        found = best(self.outcomes, self.policy.tie)
        return None if found is None else found.schedule

    def known(self, schedule: Schedule, source: str) -> Outcome | None:
        """The outcome of a candidate, if it was tried with the same kernels."""
        for outcome in self.outcomes:
            if outcome.schedule == schedule and outcome.source == source:
                return outcome
        return None

    def after_tuning(self, origin: str) -> Entry:
        """The same once it is tuned, too: its origin says so."""
        return self if self.tuned else replace(self, origin=origin)

    def with_outcomes(self, more: tuple[Outcome, ...]) -> Entry:
        """With `more` added; a newer outcome replaces that of the same schedule."""
        merged = {outcome.schedule: outcome for outcome in (*self.outcomes, *more)}
        return replace(self, outcomes=tuple(merged.values()))

    def to_bytes(self) -> bytes:
        """The file: content, then a checksum over it."""
        chosen = self.chosen
        content = {
            "key": self.key.to_json(),
            "environment": self.environment.to_json(),
            "policy": asdict(self.policy),
            "chosen": None if chosen is None else chosen.to_json(),
            "outcomes": [_outcome_json(outcome) for outcome in self.outcomes],
            "origin": self.origin,
        }
        return dump({"content": content, "checksum": _checksum(content)})

    @classmethod
    def from_bytes(cls, data: bytes) -> Entry:
        """Inverse of `to_bytes`. Raises `InvalidEntry`, whatever `data` is."""
        try:
            return _parse(data)
        except InvalidEntry:
            raise
        except (UnicodeError, json.JSONDecodeError, RecursionError) as error:
            raise InvalidEntry(f"no JSON text ({type(error).__name__})") from None
        except (*MISTAKES, BoleirError) as error:
            raise InvalidEntry(f"no entry of this version ({_first_line(error)})") from None


def _outcome_json(outcome: Outcome) -> dict[str, Any]:
    values = {"us": outcome.us, "error": outcome.error, "failure": outcome.failure}
    return {"schedule": outcome.schedule.to_json(), "source": outcome.source, **values}


def _checksum(content: Any) -> str:
    return hashlib.sha256(dump(content)).hexdigest()


def _first_line(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"


def _parse(data: bytes) -> Entry:
    whole = json.loads(data.decode("utf-8"))
    if not isinstance(whole, dict) or set(whole) != {"content", "checksum"}:
        raise InvalidEntry("neither content nor checksum")
    content = whole["content"]
    if whole["checksum"] != _checksum(content):
        raise InvalidEntry("the checksum does not fit the content")
    key = _fields(TuningKey, content["key"], recurrence=_name, parents=_parents)
    key.shapes  # noqa: B018  (refuses sizes that no kernel can have)
    if not 1 <= key.batch < 1 << 31:
        raise InvalidEntry(f"batch {key.batch} is no number of requests")
    entry = Entry(
        key,
        _fields(Environment, content["environment"], **dict.fromkeys(TOOLS, _word)),
        _fields(Policy, content["policy"], tie=_real),
        tuple(_outcome(item) for item in content["outcomes"]),
        str(content["origin"]),
    )
    chosen = content["chosen"]
    if entry.chosen != (None if chosen is None else _schedule(chosen)):
        raise InvalidEntry("the chosen schedule is not the best of those that were tried")
    return entry


def _outcome(values: Any) -> Outcome:
    item = dict(values)
    schedule = _schedule(item.pop("schedule"))
    outcome: Outcome = Outcome(schedule, **item)
    if not isinstance(outcome.source, str) or not isinstance(outcome.failure, str | None):
        raise InvalidEntry("an outcome's text is no text")
    for name in ("us", "error"):
        value = getattr(outcome, name)
        if value is not None:
            _real(value, f"{name} is no time or error")
    if outcome.ok == (outcome.failure is not None):
        raise InvalidEntry("an outcome has a time or a reason why not")
    return outcome


def _schedule(values: Any) -> Schedule:
    """A schedule. Fields that its version did not have stand for what all schedules did then, which
    is their default."""
    found: Schedule = _fields(Schedule, {**Schedule().to_json(), **values})
    return found


def _parents(value: Any) -> tuple[int, ...] | None:
    if value is None:
        return None
    if type(value) is not list or not all(type(node) is int for node in value):
        raise InvalidEntry("parents are no list of integers")
    return tuple(value)


TOOLS = ("gpu", "arch", "triton", "ptxas")
"""Fields of an environment that name something."""


def _name(value: Any) -> str:
    """The name of a recurrence, as the language has them."""
    if type(value) is not str or len(value) > 200 or not value.rstrip("'").isidentifier():
        raise InvalidEntry(f"{_short(value)} is no name of a recurrence")
    return value


def _word(value: Any) -> str:
    """The name or version of a GPU or tool: no path, nothing that a terminal would act on."""
    if type(value) is not str or not re.fullmatch(r"[A-Za-z0-9_.+!-]{1,56}", value):
        raise InvalidEntry(f"{_short(value)} names no GPU and no version")
    return value


def _real(value: Any, what: str = "tie is no ratio") -> float:
    """A finite number that is not negative. An integer that no float can hold raises as it is."""
    if not _is(value, float) or not math.isfinite(value) or value < 0:
        raise InvalidEntry(f"{what}: {_short(value)}")
    found: float = value
    return found


def _short(value: Any) -> str:
    return repr(value)[:80]


TYPES = {"int": int, "str": str, "float": float, "bool": bool}


def _fields(cls: Any, values: Any, **special: Any) -> Any:
    """A dataclass from plain values whose names and types are exactly its own."""
    kinds = {name: item.type for name, item in cls.__dataclass_fields__.items()}
    if set(values) != set(kinds):
        raise InvalidEntry(f"{cls.__name__}: fields {sorted(set(values) ^ set(kinds))}")
    made = {}
    for name, value in values.items():
        if name in special:
            made[name] = special[name](value)
        elif not _is(value, TYPES[kinds[name]]):
            raise InvalidEntry(f"{cls.__name__}.{name} {_short(value)} is no {kinds[name]}")
        else:
            made[name] = value
    return cls(**made)


def _is(value: Any, kind: type) -> bool:
    """Of exactly this kind: a truth value is no number, an integer may stand for a real."""
    return type(value) is kind or (kind is float and type(value) is int)
