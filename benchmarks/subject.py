"""What the harness asks of anything it measures: boleir, its peers, and the plain torch version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import torch

Tensor = torch.Tensor

PER_LAYER_STAGES = ("conv", "verify")
"""Called once for every layer, after `prepare(layer)`."""

PER_ROUND_STAGES = ("topology", "commit", "window")
"""Called once for all layers together."""

SUMMED_STAGES = ("topology", "conv", "verify", "commit")
"""What a round costs; `window` is reported but not held against the peers that need it."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """Device tensors that one layer's stages write, as views into the subject's own memory."""

    out: Tensor
    """`[N, HV, d_v]`, written by verify."""
    state: Tensor
    """`[slots, HV, d_v, d_k]`, read by verify and updated by commit."""
    qkv: Tensor | None = None
    """`[N, dim]`, written by conv; None when it is never stored."""
    window: Tensor | None = None
    """`[slots, dim, conv_width - 1]`, oldest first; None when it is not committed."""


class Subject(Protocol):
    """One implementation, bound to one workload.

    Device work only: no host synchronisation, so that every stage can be captured into a graph.
    Stages missing from `stages` are never called. The constructor may allocate, compile and tune.
    """

    @property
    def name(self) -> str:
        """Heading of its column."""

    @property
    def stages(self) -> tuple[str, ...]:
        """The stages it has, out of PER_LAYER_STAGES and PER_ROUND_STAGES."""

    @property
    def updates_in_place(self) -> bool:
        """True when verify itself moves the state to its last node (a decode step)."""

    def prepare(self, layer: int) -> None:
        """Select the layer that the next calls work on. Host work only."""

    def topology(self) -> None:
        """Derive what this round's trees need, once for all layers."""

    def conv(self) -> None:
        """Convolve the selected layer's packed projection, and whatever is fused with that."""

    def verify(self) -> None:
        """Write the outputs of all nodes of the selected layer. The state stays untouched."""

    def commit(self) -> None:
        """Move every layer's state (and window) to the accepted nodes."""

    def outputs(self) -> Outputs:
        """The selected layer's results; after a graph capture, the memory the graph writes."""
