"""The ancestors of nodes as a matrix of ones and zeros: an operand of sums along paths.

Tests of single entries would take a predicate and a selection each, and a load of a word for most
of them: the layout that suits them has a row of the matrix in many threads. Here a thread loads one
word and unpacks a part of a row. Until the end a number of 32 bits stands for two neighbours, which
cost one shift, one `&` and one product.
"""

from __future__ import annotations

from boleir.codegen.emit.frame import Frame

PARTS = 128
"""Parts that all rows together are unpacked in: one for each thread of four warps."""
ONE = {"float16": "0x3C00", "bfloat16": "0x3F80"}
"""The bits of 1.0."""


def path_matrix(frame: Frame, name: str, dtype: str) -> str:
    """Emit `name` [node, ancestor-or-self] of `dtype`, for the only block of nodes."""
    w, size = frame.writer, frame.context.schedule.node_block
    columns = size * size // PARTS
    _bits(frame, size // columns, columns)
    w.comment("columns 0 and 1 at bits 0 and 16, 2 and 3 at 2 and 18, ..")
    w.let("path_pairs", "(path_bits & 0x5555) | ((path_bits & 0xAAAA) << 15)")
    if columns == 32:
        later = "((path_bits >> 16) & 0x5555) | ((path_bits >> 1) & 0x55550000)"
        w.let("path_pairs", f"tl.join(path_pairs, {later})")
    shift = min(columns, 16) // 2
    while shift > 1:
        w.let("path_pairs", f"tl.join(path_pairs, path_pairs >> {shift})")
        shift //= 2
    w.let("path_pairs", f"(path_pairs & 0x10001) * {ONE[dtype]}")
    both = "tl.join(path_pairs.to(tl.int16), (path_pairs >> 16).to(tl.int16))"
    w.let("path_entries", f"tl.reshape({both}, [NODE_BLOCK, NODE_BLOCK])")
    return w.let(name, f"path_entries.to(tl.{dtype}, bitcast=True)")


def _bits(frame: Frame, parts: int, columns: int) -> None:
    """`path_bits` [PARTS]: the bits of so many columns, one part of a row after the other."""
    w = frame.writer
    w.comment("ancestors as ones and zeros: a thread unpacks part of a row from the bits of a word")
    w.let("row_part", f"tl.arange(0, {PARTS})")
    w.let("path_row", f"row_part // {parts}")
    w.let("path_word", frame.word_of("path_row", "path_row < count", 0, "0"))
    shift = f"(row_part % {parts} * {columns}).to(tl.int64)"
    w.let("path_bits", f"(path_word >> {shift}).to(tl.int32)")
