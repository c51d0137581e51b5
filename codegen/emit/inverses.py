"""(I+G)^-1 of a node block, as a tile or in factors.

G enters with a minus sign and either orientation: all that follows are polynomials in G, or in its
parts, so that transposing the tile transposes the result.

A rough inverse in bfloat16 and a correction in float32 are as good as a substitution in float32 up
to `DIRECT` sweeps. The correction is the start of a series, the inverse of I - E: where keys are
alike and write strengths come close to 2, entries of E^p grow like the binomial of the depth and p,
so that more terms are taken for deeper trees, and no series is short enough for the deepest ones.
There 16 nodes at a time, which are no deeper, have inverses of their own. Those of two neighbours
make that of both, exactly:

    X <- X - X G' X,   G': what the later half of a block erases of what the earlier one writes
"""

from __future__ import annotations

from boleir.codegen.emit.precision import Pieces
from boleir.codegen.emit.system import System

APART = 16
"""Nodes whose inverse is taken without that of others where the tree is deep."""
DIRECT = APART - 1
"""Most sweeps of a rough inverse."""
SQUARED = 8
"""Up to this many, E^3 is below the round-off of the rest."""


def inverse(system: System, name: str, b: int, minus_g: str, sweeps: int) -> str:
    """(I+G)^-1 of a block as a float32 tile."""
    if not sweeps:
        return system.identity(name, b)
    if system.precision.plan != "fp32":
        return _swept(system, name, b, minus_g, sweeps)
    if sweeps > DIRECT:
        return _merged(system, name, b, minus_g)
    return _corrected(system, name, b, minus_g, sweeps)


def is_direct(system: System, sweeps: int) -> bool:
    """Whether the inverse comes as a rough one and a correction."""
    return system.precision.plan == "fp32" and sweeps <= DIRECT


def rough_inverse(system: System, name: str, minus_g: str, sweeps: int) -> tuple[str, str, str]:
    """Z of a rough inverse I + Z in bfloat16, the same in float32, and the correction E + E^2 (and
    E^3) for E = I - (I+G)(I+Z): the inverse is (I + Z)(I + E + E^2 + ...).

    Sweeps in one bfloat16 pass each are self-correcting to bfloat16 accuracy. All further
    digits come from one residual, which is exact to float32 because Z is: G enters it in three
    pieces. Without I no product starts from constants, with which ptxas 12.8 has been seen to
    replace integer operations on its result.
    """
    w, precision = system.writer, system.precision
    w.comment("(I+G)^-1, rough: I + Z, Z <- -G - Z G in bfloat16")
    pieces = None if system.crowded else precision.thirds(w, minus_g)
    high = pieces.names[0] if pieces else precision.rounded(w, minus_g)[0]
    rough, top = high, f"{minus_g}_top"
    if sweeps > 1:
        rough = w.let(f"{name}_rough", rough)
        sweep = f"tl.dot({rough}, {high}, {minus_g})"
        for _ in system.repeat(sweeps - 2):
            w.let(rough, f"{sweep}.to(tl.bfloat16)")
        rough, top = precision.rounded(w, w.let(f"{name}_whole", sweep))
    terms = "E + E^2" if sweeps <= SQUARED else "E + E^2 + E^3"
    w.comment(f"what is missing: E = -G - Z - G Z, and {terms}")
    pieces = pieces or precision.thirds(w, minus_g)
    residual = w.let(f"{name}_residual", f"{minus_g} - {top}")
    precision.dot(w, residual, pieces, Pieces((rough,)), residual)
    return rough, top, _series(system, name, residual, sweeps)


def _series(system: System, name: str, residual: str, sweeps: int) -> str:
    """E + E^2, and E^3 for more sweeps: then E^2 is large enough to be needed in two pieces."""
    w, correction = system.writer, f"{name}_correction"
    if sweeps <= SQUARED:
        w.let(f"{residual}_16", f"{residual}.to(tl.bfloat16)")
        return w.let(correction, f"tl.dot({residual}_16, {residual}_16, {residual})")
    pieces = system.precision.pieces(w, residual)
    square = system.precision.dot(w, f"{name}_square", pieces, pieces)
    w.let(f"{square}_16", f"{square}.to(tl.bfloat16)")
    return w.let(correction, f"tl.dot({pieces.names[0]}, {square}_16, {residual} + {square})")


def _corrected(system: System, name: str, b: int, minus_g: str, sweeps: int) -> str:
    """The same as one tile."""
    w = system.writer
    rough, top, correction = rough_inverse(system, name, minus_g, sweeps)
    identity = system.identity(system.context.block("identity", b), b)
    w.let(name, f"{identity} + {top} + {correction}")
    pieces = system.precision.pieces(w, correction)
    return system.precision.dot(w, name, Pieces((rough,)), pieces, name)


def _merged(system: System, name: str, b: int, minus_g: str) -> str:
    """The inverses of `APART` nodes each, merged until they are one."""
    w, precision, context = system.writer, system.precision, system.context
    node, size = context.block("node", b), APART
    w.comment(f"{APART} nodes at a time: parents come before children, so they are no deeper")
    differ = f"({node}[:, None] ^ {node}[None, :])"  # the bits that two numbers differ in
    near = w.let(f"{name}_near", f"tl.where({differ} < {APART}, {minus_g}, 0.0)")
    _corrected(system, name, b, near, DIRECT)
    while size < context.schedule.node_block:
        w.comment(f"{2 * size} nodes at a time: X <- X - X G X, G from one half to the other")
        halves = f"{differ} >> {size.bit_length() - 1} == 1"
        far = w.let(f"{name}_far", f"tl.where({halves}, {minus_g}, 0.0)")
        pieces = precision.thirds(w, name)
        seen = precision.dot(w, f"{name}_seen", pieces, precision.thirds(w, far))
        precision.dot(w, name, precision.thirds(w, seen), pieces, name)
        size *= 2
    return name


def _swept(system: System, name: str, b: int, minus_g: str, sweeps: int) -> str:
    """Horner's rule on the identity, in the precision that was asked for."""
    w, precision = system.writer, system.precision
    identity = system.identity(system.context.block("identity", b), b)
    w.let(name, f"{identity} + {minus_g}")
    pieces = precision.pieces(w, minus_g)
    for _ in system.repeat(sweeps - 1):
        precision.dot(w, name, precision.pieces(w, name), pieces, identity)
    return name


def product_form(system: System, name: str, b: int, minus_g: str, sweeps: int) -> str:
    """(I-G)(I+G^2)(I+G^4)... of a block: fewer steps, but powers of G lose digits (bounded in
    the schedule)."""
    w, precision, reached = system.writer, system.precision, 1
    identity = system.identity(system.context.block("identity", b), b)
    w.let(name, f"{identity} + {minus_g}")
    power = minus_g
    while reached < sweeps:
        pieces = precision.pieces(w, power)
        power = precision.dot(w, f"{name}_power", pieces, pieces)
        squared = precision.pieces(w, power)
        precision.dot(w, name, precision.pieces(w, name), squared, name)
        reached = 2 * reached + 1
    return name
