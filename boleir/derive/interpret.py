"""Abstract interpretation of a recurrence: every node as an affine function of the parent's state.

One rule per node type. A rule that meets something that is not affine raises the refusal that fits,
pointing at the node; functions of the state travel as `Tainted` until their use shows what they are
(a gate that reads the state, or a plain non-linear term).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from boleir.derive.affine import LEFT, RIGHT, Affine, Side, State, Token, outer
from boleir.derive.algebra import ONE, ZERO, Poly, constant, divide, split_scalar
from boleir.derive.canonical import Canon, contract, reciprocal
from boleir.derive.refusals import (
    DivisionByState,
    DivisionByZero,
    ElementwiseDecay,
    FunctionOfState,
    GateReadsState,
    ProductOfStates,
    ReadFromTheWrongSide,
    Refusal,
    SeveralReads,
    StateOutsideProducts,
    TwoSided,
)
from boleir.ir import (
    Add,
    Call,
    Conv,
    Div,
    Dot,
    Expr,
    Kind,
    Mul,
    Neg,
    Outer,
    Previous,
    Read,
    ReadKey,
    Recurrence,
    Sub,
    walk,
)


@dataclass(frozen=True, slots=True)
class Tainted:
    """A state-dependent value that is affine in nothing; `refusal` says why, unless its use
    does."""

    term: Expr
    refusal: type[Refusal]


@dataclass(frozen=True, slots=True)
class CrossRead:
    """A right-acting state read on its key side: gain * (state^T vector) + free, for the output."""

    state: State
    vector: Poly
    gain: Poly = ONE
    free: Poly = ZERO


@dataclass(frozen=True, slots=True)
class ScalarRead(Tainted):
    """vector^T form + free with a right-acting form: times a written vector it is a part of an
    output."""

    form: Affine
    vector: Poly
    free: Poly = ZERO


Value: TypeAlias = Poly | Affine | State | Tainted | CrossRead


def side_of(recurrence: Recurrence) -> Side:
    """Which side the update acts on: left unless it reads S v. Both at once are refused."""
    stateful = state_dependent(recurrence.update)
    left = right = None
    for node in walk(recurrence.update):
        if isinstance(node, Read | ReadKey) and node.state.key in stateful:
            if node.vector.key in stateful:
                raise ProductOfStates(node)
            if isinstance(node, Read):
                left = left or node
            else:
                right = right or node
    if left is not None and right is not None:
        raise TwoSided(right)
    return RIGHT if right is not None else LEFT


def state_dependent(*roots: Expr) -> frozenset[int]:
    """Keys of all nodes below `roots` that contain the parent's state."""
    found: set[int] = set()
    for node in walk(*roots):
        if isinstance(node, Previous) or any(child.key in found for child in node.children):
            found.add(node.key)
    return frozenset(found)


class Interpreter:
    """Values of the nodes of one recurrence."""

    def __init__(self, recurrence: Recurrence) -> None:
        self.side = side_of(recurrence)
        self.token = Token(self.side)
        self.canon = Canon()
        self.values: dict[int, Value] = {}
        self.elementwise: Expr | None = None
        """The first state that decays over keys and values at once; reads of it may be all there is
        to it, so only the new state decides."""
        roots = (recurrence.update, *recurrence.outputs)
        # States that the update reads again must name their terms, so that steps form a chain.
        self._read_again = {
            node.state.key for node in walk(recurrence.update) if isinstance(node, Read | ReadKey)
        }
        for node in walk(*roots):
            if node.key not in self.values:
                self.values[node.key] = self._value(node)

    def _value(self, node: Expr) -> Value:
        parts = [self.values[child.key] for child in node.children]
        if node.kind is not Kind.STATE and all(isinstance(part, Poly) for part in parts):
            poly = self.canon.poly(node)
            if node.hint is not None or node.span is not None:
                self.canon.note(node)
            return poly
        value = _RULES[type(node)](self, node, parts)
        if isinstance(value, Affine):
            value = _simplest(value)
        if isinstance(value, Poly):  # what reads no state in the end, like (k v^T)^T q
            self.canon.know(node, value)
        if isinstance(value, State):
            if len(value.decay.vectors) > 1 and self.elementwise is None:
                self.elementwise = node
            if node.key in self._read_again and not value.is_free:
                value = value.seal(self.token)
        return value

    # One method per node type: node and the values of its operands in, its value out.

    def previous(self, node: Expr, parts: list[Value]) -> Value:
        return State(decay=ONE)

    def neg(self, node: Expr, parts: list[Value]) -> Value:
        return self._scaled(node, parts[0], constant(-1))

    def add(self, node: Expr, parts: list[Value]) -> Value:
        left, right = parts
        for part, other in ((left, right), (right, left)):
            if isinstance(part, Tainted):
                if isinstance(other, State):
                    raise StateOutsideProducts(node)
                return _sum_of_scalars(node, part, other)
        if isinstance(left, State) and isinstance(right, State):
            return left + right
        if isinstance(left, State) or isinstance(right, State):
            raise StateOutsideProducts(node)
        if isinstance(left, CrossRead) or isinstance(right, CrossRead):
            return self._add_cross(node, left, right)
        return _lift(left) + _lift(right)

    def sub(self, node: Expr, parts: list[Value]) -> Value:
        return self.add(node, [parts[0], self._scaled(node, parts[1], constant(-1))])

    def mul(self, node: Expr, parts: list[Value]) -> Value:
        left, right = parts
        if isinstance(left, Poly):
            return self._scaled(node, right, left)
        if isinstance(right, Poly):
            return self._scaled(node, left, right)
        for factor, other, operand in (
            (left, right, node.children[0]),
            (right, left, node.children[1]),
        ):
            if isinstance(other, State):
                if isinstance(factor, State):
                    raise ElementwiseDecay(node, detail=_STATE_TIMES_STATE)
                if not other.is_free:
                    raise GateReadsState(factor.term if isinstance(factor, Tainted) else operand)
                return self._gate_free_state(node, factor, other)
        for factor, other in ((left, right), (right, left)):
            if isinstance(factor, Tainted) and factor.refusal is FunctionOfState:
                gates = not isinstance(other, Tainted)  # it scales what is linear in the state
                raise (GateReadsState if gates else FunctionOfState)(factor.term)
        raise ProductOfStates(node)

    def div(self, node: Expr, parts: list[Value]) -> Value:
        top, bottom = parts
        if not isinstance(bottom, Poly):
            raise DivisionByState(node)
        if not bottom:
            raise DivisionByZero(node)
        return self._scaled(node, top, reciprocal(bottom))

    def call(self, node: Expr, parts: list[Value]) -> Value:
        assert isinstance(node, Call)
        (value,) = parts
        if node.fn == "sum" and isinstance(value, Affine):
            return Tainted(node, TwoSided)  # 1^T of a read: a number that mixes both sides
        return Tainted(node, FunctionOfState)

    def conv(self, node: Expr, parts: list[Value]) -> Value:
        return Tainted(node, FunctionOfState)

    def dot(self, node: Expr, parts: list[Value]) -> Value:
        if any(isinstance(part, Poly) for part in parts):
            for part in parts:
                if isinstance(part, Tainted):
                    return part
            form, vector = parts if isinstance(parts[0], Affine) else reversed(parts)
            if self.side is RIGHT and isinstance(form, Affine) and isinstance(vector, Poly):
                return ScalarRead(node, TwoSided, form, vector)
            read, along = parts if isinstance(parts[0], CrossRead) else reversed(parts)
            if isinstance(read, CrossRead) and isinstance(along, Poly):
                form = read.state.read(along * read.gain, self.token)  # w^T (S^T q) = q^T (S w)
                free = contract(self.side.write, along * read.free)
                return ScalarRead(node, TwoSided, form, read.vector, free)
            return Tainted(node, TwoSided)
        raise ProductOfStates(node)

    def outer(self, node: Expr, parts: list[Value]) -> Value:
        key, value = parts
        write, unknown = (key, value) if self.side is LEFT else (value, key)
        for part in (write, unknown):
            if isinstance(part, Tainted):
                raise part.refusal(part.term)
        if not isinstance(write, Poly):
            if isinstance(unknown, Poly):
                raise TwoSided(node)
            raise ProductOfStates(node)
        return outer(write, _lift(unknown), self.side)

    def read(self, node: Expr, parts: list[Value]) -> Value:
        return self._read(node, parts, own=self.side is LEFT)

    def read_key(self, node: Expr, parts: list[Value]) -> Value:
        return self._read(node, parts, own=self.side is RIGHT)

    def _read(self, node: Expr, parts: list[Value], *, own: bool) -> Value:
        state, vector = parts
        if not isinstance(state, State):
            raise StateOutsideProducts(node)
        if not isinstance(vector, Poly):
            if isinstance(vector, Tainted):
                raise vector.refusal(vector.term)
            raise ProductOfStates(node)
        if own:
            return state.read(vector, self.token)
        if not state.is_free:
            if self.side is RIGHT:
                return CrossRead(state, vector)
            raise ReadFromTheWrongSide(node)
        parts_of = (
            direction * contract(self.side.unknown, form.free * vector)
            for direction, form in state.terms.items()
        )
        return sum(parts_of, ZERO)

    def _scaled(self, node: Expr, value: Value, factor: Poly) -> Value:
        match value:
            case Poly():
                return value * factor
            case Affine():
                return value.scaled(factor, self.side)
            case State():
                return value.scaled(factor, self.side)
            case ScalarRead() if self.side.write in factor.vectors:
                state = outer(factor, value.form, self.side)
                return CrossRead(state, value.vector, free=value.free * factor)
            case ScalarRead() if not factor.vectors:
                form, vector, free = value.form, value.vector * factor, value.free * factor
                return ScalarRead(value.term, value.refusal, form, vector, free)
            case Tainted():
                return value
            case CrossRead():
                scalar, rest = split_scalar(factor) if factor else (ZERO, ONE)
                return CrossRead(
                    value.state, value.vector * scalar, value.gain * rest, value.free * factor
                )

    def _gate_free_state(self, node: Expr, factor: Value, state: State) -> Value:
        if isinstance(factor, Tainted):
            raise factor.refusal(factor.term)
        if not isinstance(factor, Affine):
            raise StateOutsideProducts(node)
        result = State()
        for direction, form in state.terms.items():
            result = result + outer(direction, factor.scaled(form.free, self.side), self.side)
        return result

    def _add_cross(self, node: Expr, left: Value, right: Value) -> Value:
        if isinstance(left, Poly) and isinstance(right, CrossRead):
            left, right = right, left
        if isinstance(left, CrossRead) and isinstance(right, Poly):
            return CrossRead(left.state, left.vector, left.gain, left.free + right)
        if isinstance(left, CrossRead) and isinstance(right, CrossRead):
            total = self._sum_of_reads(left, right)
            if total is not None:
                return total
        raise SeveralReads(node)

    def _sum_of_reads(self, left: CrossRead, right: CrossRead) -> CrossRead | None:
        """S^T x + S^T y = S^T (x + y), and S^T q + T^T (c q) = (S + c T)^T q."""
        free = left.free + right.free
        if left.gain != right.gain:  # of the written side, so the states can take it
            left, right = (
                CrossRead(read.state.scaled(read.gain, self.side), read.vector)
                for read in (left, right)
            )
        share = divide(right.state.decay, left.state.decay) if left.state.decay else ONE
        if share and not share.vectors and left.state.scaled(share, self.side) == right.state:
            vector = left.vector + right.vector * share
            return CrossRead(left.state, vector, left.gain, free)
        for one, other in ((left, right), (right, left)):
            ratio = divide(other.vector, one.vector)
            if ratio is not None and not ratio.vectors:
                state = one.state + other.state.scaled(ratio, self.side)
                return CrossRead(state, one.vector, one.gain, free)
        return None


_STATE_TIMES_STATE = (
    "an elementwise product with a full K x V matrix has no matrix form, "
    "so paths cannot be factorised"
)


def _sum_of_scalars(node: Expr, part: Tainted, other: Value) -> Tainted:
    """Of a function of the state and anything but a state; what it is, if it is anything at all."""
    if not isinstance(part, ScalarRead):
        return part
    if isinstance(other, Poly):
        return replace(part, free=part.free + other)
    if isinstance(other, ScalarRead):
        for one, more in ((part, other), (other, part)):
            ratio = divide(more.vector, one.vector)
            if ratio is not None and not ratio.vectors:
                form = one.form + more.form.scaled(ratio, RIGHT)
                return ScalarRead(node, TwoSided, form, one.vector, one.free + more.free)
    return Tainted(node, TwoSided)


def _lift(value: Value) -> Affine:
    if isinstance(value, Poly):
        return Affine(value)
    assert isinstance(value, Affine)
    return value


def _simplest(form: Affine) -> Poly | Affine:
    return form.free if form.is_free else form


_Rule: TypeAlias = Callable[[Interpreter, Expr, list[Value]], Value]
_RULES: Mapping[type[Expr], _Rule] = {
    Previous: Interpreter.previous,
    Neg: Interpreter.neg,
    Add: Interpreter.add,
    Sub: Interpreter.sub,
    Mul: Interpreter.mul,
    Div: Interpreter.div,
    Call: Interpreter.call,
    Conv: Interpreter.conv,
    Dot: Interpreter.dot,
    Outer: Interpreter.outer,
    Read: Interpreter.read,
    ReadKey: Interpreter.read_key,
}
