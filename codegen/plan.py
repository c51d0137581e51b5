"""From a normal form to the quantities a kernel computes: which vectors lie in memory, which
scalars scale them.

A product of vectors is exact when both come straight from memory in 16 bits, so normalisation,
gates and write strengths are kept apart from the vectors they scale: they become *row scalars*, one
float32 per node and head, that multiply rows after the product. The plan lists the row scalars of a
recurrence, the vectors they belong to, and the inputs that a causal convolution mixes along the
path before anything else happens.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from boleir.derive.normal_form import NormalForm
from boleir.errors import ScheduleError
from boleir.ir import Call, Dot, Expr, Input, Kind, Per, walk


class NoKernel(ScheduleError):
    """A recurrence whose closed form is known but for which no kernel can be emitted; the reason is
    named."""


@dataclass(frozen=True, slots=True)
class Mixed:
    """An input after its convolution and activations: stored once per round by the prepare
    kernel."""

    item: Input
    """Stands for the stored values in the expressions of the plan."""
    source: Input
    width: int
    functions: tuple[str, ...]
    """Elementwise functions applied after the convolution, innermost first."""
    offset: int
    """First channel in the packed windows and weights of all mixed inputs."""
    channels: int
    kept: bool
    """Whether the commit reads it too. Such inputs have memory of their own in every layer; the
    others (a query) pass through memory that all layers share. The schedule decides, see
    `boleir.codegen.emit.commit_inputs.keep_for_commit`; all are kept as long as there is none."""
    column: int
    """First channel in the rows of its buffer."""

    @property
    def buffer(self) -> str:
        """Name of the pointer to the stored values."""
        return "mixed" if self.kept else "passing"

    @property
    def row_size(self) -> str:
        """Name of the constant that holds the channels of a row of that buffer."""
        return "KEPT_CHANNELS" if self.kept else "PASSING_CHANNELS"


@dataclass(frozen=True, slots=True)
class Scalar:
    """A row scalar: a float32 per node and head."""

    name: str
    expr: Expr
    per_key_head: bool
    """Depends on key vectors alone, so that grouped heads share it."""
    watches: Kind | None = None
    """Kind of the vector it exists to watch: it scales nothing, but is not finite where the vector
    is not."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A vector as `constant * product of row scalars * base`; `base` is what is loaded or computed
    elementwise."""

    constant: float
    scalars: tuple[str, ...]
    base: Expr

    @property
    def stored(self) -> bool:
        """Whether the base lies in memory as it is (then products with it are exact in 16 bits)."""
        return isinstance(self.base, Input) and self.base.per is Per.TOKEN


@dataclass(frozen=True, slots=True)
class PairPlan:
    """An erase/write pair in terms of operands; see `boleir.derive.normal_form.Pair`."""

    write: Operand
    erase: Operand
    after_decay: bool
    target: Expr
    coupling: tuple[str | None, ...]
    """Row scalar for each earlier pair, or None where there is no coupling."""
    gain: Expr | None

    @property
    def watched(self) -> bool:
        """Whether only the output sees the unknown: nothing is written along zero."""
        return self.write.constant == 0.0


@dataclass(frozen=True, slots=True)
class WritePlan:
    """A pure write."""

    key: Operand
    value: Expr


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """How one output reads states and what its node writes; see
    `boleir.derive.normal_form.Readout`."""

    number: int
    """Which output it is, counted from 0."""
    output: Expr
    """The output as it was written."""
    query: Operand
    after_decay: bool
    inclusive: bool
    """It reads the new state: C is the inclusive Gram. Otherwise `own_pairs`/`own_writes` give its
    diagonal."""
    own_pairs: tuple[str | None, ...]
    own_writes: tuple[str | None, ...]
    direct: Expr | None
    gain: Expr | None
    """VALUE, or HEAD where updates act from the right: no query takes it in there."""

    @property
    def mark(self) -> str:
        """What names of its tiles end in: nothing for the first output."""
        return f"_o{self.number + 1}" if self.number else ""

    @property
    def pointer(self) -> str:
        """Name of the pointer to the output."""
        return output_pointer(self.number)

    @property
    def own(self) -> tuple[str | None, ...]:
        """Weights of what the node itself writes: unknowns of pairs, then values."""
        return (*self.own_pairs, *self.own_writes)


def output_pointer(number: int) -> str:
    """Name of the pointer to an output of that number."""
    return f"out_{number + 1}" if number else "out"


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything emission needs to know about a recurrence, apart from schedule and shapes."""

    form: NormalForm
    name: str
    tokens: tuple[Input, ...]
    """Token inputs of the kernels that follow the convolution: mixed ones stand for their
    sources."""
    parameters: tuple[Input, ...]
    mixed: tuple[Mixed, ...]
    scalars: tuple[Scalar, ...]
    log_decay: Expr | None
    """HEAD: the logarithm of the decay. None when the state does not decay, or per channel."""
    key_decay: Expr | None
    """KEY: the factor of every key channel; None when the state decays in no way or another.

    The factors themselves: products of them along a path need no logarithm and no difference.
    """
    key_log_decay: Expr | None
    """KEY: the logarithm of `key_decay`, which sums along a path need where they stay small."""
    value_decay: Expr | None
    """VALUE: the same as `key_decay` for every value channel."""
    unknown_log_decay: Expr | None
    """The logarithm of `key_decay` or `value_decay` where it decays channels of the unknowns."""
    pairs: tuple[PairPlan, ...]
    writes: tuple[WritePlan, ...]
    readouts: tuple[ReadPlan, ...]
    """One for each output of the recurrence: all are read in the same kernels."""
    entangled: Scalar | None = field(init=False, compare=False)
    """A row scalar that depends on a convolved input and on another one, or sums along paths that
    depend on a convolved one of several nodes: no program of the prepare kernel sees all. Limits of
    schedules ask for it, thousands of times."""

    def __post_init__(self) -> None:
        found = [scalar for scalar in self.scalars if self._is_entangled(scalar)]
        if self.log_decay is not None:
            summed = Scalar("a sum of log-decays", self.log_decay, per_key_head=False)
            found += [summed] if self.source(summed) else []
        object.__setattr__(self, "entangled", next(iter(found), None))

    @property
    def right(self) -> bool:
        """Whether updates act from the right: unknowns are key vectors, written along values."""
        return self.form.side == "right"

    @property
    def written(self) -> Kind:
        """The side that vectors are written along: the other one has the unknowns."""
        return Kind.VALUE if self.right else Kind.KEY

    @property
    def unknown(self) -> Kind:
        """The side of the unknowns."""
        return Kind.KEY if self.right else Kind.VALUE

    @property
    def reading(self) -> tuple[Operand, ...]:
        """What reads the state: pairs, then outputs."""
        erased = (pair.erase for pair in self.pairs)
        return (*erased, *(readout.query for readout in self.readouts))

    @property
    def writing(self) -> tuple[PairPlan, ...]:
        """The pairs that change the state; those behind them are `watched`."""
        return tuple(pair for pair in self.pairs if not pair.watched)

    @property
    def grams_per_key_head(self) -> bool:
        """Whether products of vectors are the same for all value heads of a key head: nothing of a
        value head stands inside them."""
        written = [x.write for x in self.pairs] + [x.key for x in self.writes]
        bases = (operand.base for operand in (*self.reading, *written))
        inputs = (x for x in walk(*bases) if isinstance(x, Input))
        return self.key_decay is None and all(x.kind is Kind.KEY for x in inputs)

    def is_per_key_head(self, scalars: tuple[Scalar, ...]) -> bool:
        """Whether the system of the tree is the same for all value heads of a key head: its
        vectors, decays and the row `scalars` in it depend on key vectors alone."""
        written = [x.write.base for x in self.pairs] + [x.key.base for x in self.writes]
        exprs = [operand.base for operand in self.reading] + written
        exprs += [x for x in (self.log_decay, self.key_decay, self.key_log_decay) if x is not None]
        exprs += [scalar.expr for scalar in scalars]
        return all(x.kind is Kind.KEY for x in walk(*exprs) if isinstance(x, Input))

    @property
    def reads_sums(self) -> bool:
        """Whether a vector that reads the state is computed from a sum over key channels."""
        bases = (operand.base for operand in self.reading)
        return any(
            isinstance(x, Dot) or (isinstance(x, Call) and x.fn == "sum") for x in walk(*bases)
        )

    @property
    def staged(self) -> bool:
        """Whether one inverse per head, or an exact product of vectors, does not do: updates from
        the right, and decays per value channel."""
        return self.right or self.value_decay is not None

    @property
    def conv_width(self) -> int:
        """Taps of the convolution, 1 when there is none."""
        return max((m.width for m in self.mixed), default=1)

    @property
    def conv_channels(self) -> int:
        """Channels of the packed convolution window."""
        return sum(m.channels for m in self.mixed)

    @property
    def kept_channels(self) -> int:
        """Channels of the convolved inputs that the commit reads."""
        return sum(m.channels for m in self.mixed if m.kept)

    def scalar(self, name: str) -> Scalar:
        """The row scalar called `name`."""
        return next(s for s in self.scalars if s.name == name)

    def source(self, scalar: Scalar) -> Mixed | None:
        """The first convolved input that a row scalar depends on; None for a scalar without."""
        inputs = (node for node in walk(scalar.expr) if isinstance(node, Input))
        return next((mixed for node in inputs if (mixed := self.is_mixed(node))), None)

    @property
    def written_values(self) -> tuple[Expr, ...]:
        """The value vectors of pairs and pure writes."""
        return (*(pair.target for pair in self.pairs), *(write.value for write in self.writes))

    def _is_entangled(self, scalar: Scalar) -> bool:
        inputs = {node.key for node in walk(scalar.expr) if isinstance(node, Input)}
        return self.source(scalar) is not None and len(inputs) > 1

    def is_mixed(self, item: Input) -> Mixed | None:
        """The convolution behind `item`, or None for an input that is used as it comes."""
        return next((m for m in self.mixed if m.item == item), None)
