"""The precision plan: in how many pieces an operand enters a product, and which are taken.

bfloat16 tensor-core products accumulate in float32 and are exact in their operands. An operand that
comes from memory in bfloat16 is one piece; a float32 one is split into a high and a low bfloat16
part, which together keep 16 mantissa bits, or into three, which keep all. A product of two operands
takes one pass per pair of pieces, pairs of low parts left out.
"""

from __future__ import annotations

from dataclasses import dataclass

from boleir.codegen.emit.writer import Writer


@dataclass(frozen=True, slots=True)
class Pieces:
    """Names of the parts of one operand, largest first; `whole` is the float32 (or exact) value."""

    names: tuple[str, ...]

    def transposed(self) -> Pieces:
        """The same operand transposed."""
        return Pieces(tuple(f"tl.trans({name})" for name in self.names))


class Precision:
    """How products are written under one plan (`fp32`, `tf32`, `bf16`, `ieee`).

    `whole`: float32 operands enter with all their bits, in three pieces. Two are enough where all
    channels of an output share their decays; where some have grown far above the others, the
    output is as good as these few, one of which may nearly vanish.
    """

    def __init__(self, plan: str, *, whole: bool = False) -> None:
        self.plan = plan
        self.whole = whole

    def pieces(self, writer: Writer, name: str, dtype: str = "fp32") -> Pieces:
        """Split the tile `name` of element type `dtype`; lines are written once per call."""
        if self.whole and dtype == "fp32":
            return self.thirds(writer, name)
        return self._halves(writer, name, dtype)

    def _halves(self, writer: Writer, name: str, dtype: str) -> Pieces:
        if self.plan in ("ieee", "tf32"):
            return Pieces(
                (name if dtype == "fp32" else writer.let(f"{name}_f32", f"{name}.to(tl.float32)"),)
            )
        if dtype == "bf16":
            return Pieces((name,))
        if self.plan == "bf16":
            return Pieces((writer.let(f"{name}_hi", f"{name}.to(tl.bfloat16)"),))
        high, top = self.rounded(writer, name)
        return Pieces((high, writer.let(f"{name}_lo", f"({name} - {top}).to(tl.bfloat16)")))

    def rounded(self, writer: Writer, name: str) -> tuple[str, str]:
        """The float32 tile `name` rounded to bfloat16, and the same in float32.

        Rounded as an integer: a conversion whose result is needed in both formats goes one by one
        through a slow unit of NVIDIA's processors, one that is exact goes in pairs. NaN may become
        a number here: then what is left over is NaN.
        """
        if self.whole:
            high = writer.let(f"{name}_hi", f"{name}.to(tl.bfloat16)")
            return high, writer.let(f"{name}_top", f"{high}.to(tl.float32)")
        bits = f"{name}.to(tl.int32, bitcast=True)"
        rounded = f"(({bits} + 0x8000) & -0x10000).to(tl.float32, bitcast=True)"
        top = writer.let(f"{name}_top", rounded)
        return writer.let(f"{name}_hi", f"{top}.to(tl.bfloat16)"), top

    def thirds(self, writer: Writer, name: str) -> Pieces:
        """Three bfloat16 parts: all 24 bits of a float32 tile, for products with an operand that is
        exact. The second is cut off, not rounded: what is left still fits into eight bits."""
        if self.plan != "fp32":
            return self._halves(writer, name, "fp32")
        high, top = self.rounded(writer, name)
        rest = writer.let(f"{name}_rest", f"{name} - {top}")
        cut = f"({rest}.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)"
        middle = writer.let(f"{name}_mid", cut)
        low = writer.let(f"{name}_lo", f"{middle}.to(tl.bfloat16)")
        last = writer.let(f"{name}_last", f"({rest} - {middle}).to(tl.bfloat16)")
        return Pieces((high, low, last))

    def thirds_and_halves(self, writer: Writer, name: str) -> tuple[Pieces, Pieces]:
        """The same with the two pieces that others take, whose second one is rounded."""
        pieces = self.thirds(writer, name)
        if len(pieces.names) < 3:
            return pieces, pieces
        near = writer.let(f"{name}_near", f"{name}_rest.to(tl.bfloat16)")
        return pieces, Pieces((pieces.names[0], near))

    def dot(
        self, writer: Writer, out: str, left: Pieces, right: Pieces, start: str | None = None
    ) -> str:
        """`out = start + left @ right`, smallest contributions first."""
        pairs = [
            (a, b)
            for i, a in enumerate(left.names)
            for j, b in enumerate(right.names)
            if i + j < max(len(left.names), len(right.names))
        ]
        weight = {name: i for names in (left.names, right.names) for i, name in enumerate(names)}
        pairs.sort(key=lambda pair: -(weight[pair[0]] + weight[pair[1]]))
        option = {"ieee": ', input_precision="ieee"', "tf32": ', input_precision="tf32"'}.get(
            self.plan, ""
        )
        for a, b in pairs:
            writer.let(out, f"tl.dot({a}, {b}{f', {start}' if start else ''}{option})")
            start = out
        return out
