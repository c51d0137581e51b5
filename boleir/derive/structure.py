"""Questions about a normal form that more than one stage asks: chains of pairs, what a read
sees."""

from __future__ import annotations

from boleir.derive.algebra import ZERO, Poly
from boleir.derive.canonical import Canon, contract
from boleir.derive.closed_form import Class
from boleir.derive.logs import assumed_positive
from boleir.derive.normal_form import NormalForm, Pair
from boleir.derive.notation import plain
from boleir.derive.refusals import RankTooLarge
from boleir.ir import Expr, Kind, Number


def is_zero(expr: Expr) -> bool:
    """Whether an expression is the constant 0."""
    return isinstance(expr, Number) and expr.value == 0


def longest_coupling_chain(pairs: tuple[Pair, ...]) -> int:
    """Most pairs of one token that act one after the other; 1 for simultaneous pairs, 0 without."""
    lengths: list[int] = []
    for pair in pairs:
        before = [n for n, m in zip(lengths, pair.coupling, strict=True) if not is_zero(m)]
        lengths.append(1 + max(before, default=0))
    return max(lengths, default=0)


def reads_update(form: NormalForm) -> bool:
    """Whether the output is the new state read by one vector: then C is the inclusive Gram of the
    query with the writes, and its diagonal needs no rule of its own."""
    readout = form.readout
    if readout.direct is not None or (not readout.query.after_decay and not _undecayed(form)):
        return False
    if form.side == "right":
        return all(isinstance(x, Number) and x.value == 1 for x in readout.pairs + readout.writes)
    canon = Canon()
    writes = [pair.write for pair in form.pairs] + [write.key for write in form.writes]
    weights = readout.pairs + readout.writes
    return all(
        canon.poly(weight) == dot(canon, readout.query.vector, write)
        for weight, write in zip(weights, writes, strict=True)
    )


def coupling_is_gram(form: NormalForm, a: int, b: int) -> bool:
    """Whether pair a of a token sees the whole write of its pair b: m_ab = e_a^T w_b."""
    canon = Canon()
    pair = form.pairs[a]
    kind = Kind.KEY if form.side == "left" else Kind.VALUE
    gram = contract(kind, canon.poly(pair.erase.vector) * canon.poly(form.pairs[b].write))
    return canon.poly(pair.coupling[b]) == gram


def dot(canon: Canon, left: Expr, right: Expr) -> Poly:
    """left^T right of two key vectors as a polynomial."""
    if is_zero(left) or is_zero(right):
        return ZERO
    return contract(Kind.KEY, canon.poly(left) * canon.poly(right))


def classify(form: NormalForm) -> tuple[Class, ...]:
    """The classes of a normal form, in the order of `Class`."""
    gate = {Kind.HEAD: Class.SCALAR_GATE, Kind.KEY: Class.KEY_GATE, Kind.VALUE: Class.VALUE_GATE}
    if form.side == "right":  # the form describes S^T: the write side is the value side
        gate[Kind.KEY], gate[Kind.VALUE] = gate[Kind.VALUE], gate[Kind.KEY]
    found = {
        Class.NO_SOLVE if all(is_zero(pair.write) for pair in form.pairs) else Class.SOLVE,
        Class.UNGATED if _undecayed(form) else gate[form.decay.kind],
    }
    if any(pair.gain is not None for pair in form.pairs):
        found.add(Class.VALUE_GAIN)
    if any(is_zero(pair.write) for pair in form.pairs):
        found.add(Class.WATCHED)
    if form.side == "right":
        found.add(Class.RIGHT)
    if form.micro_steps > 1:
        found.add(Class.MICRO_STEPS)
    return tuple(item for item in Class if item in found)


def assumptions(form: NormalForm) -> tuple[str, ...]:
    """Sentences about the inputs that the derivation relies on."""
    canon = Canon()
    unknown = assumed_positive(canon.poly(form.decay))
    return tuple(f"{plain(x)} > 0: its logarithm enters the path decay" for x in unknown)


def require_low_rank(form: NormalForm, d_k: int, d_v: int) -> None:
    """Raise `RankTooLarge` where the state would be cheaper to carry than its factors: when one
    token changes it by half of its rank or more."""
    rank = len(form.pairs) + len(form.writes)
    if 2 * rank > min(d_k, d_v):
        raise RankTooLarge(
            f"recurrence '{form.recurrence.name}' changes a {d_k} x {d_v} state by rank {rank} per "
            f"token, which is not small against {min(d_k, d_v)}",
            span=form.recurrence.update.span,
            mend="use larger heads or fewer writes per token",
        )


def _undecayed(form: NormalForm) -> bool:
    return isinstance(form.decay, Number) and form.decay.value == 1
