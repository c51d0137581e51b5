"""The states of one layer, and what waits for them where commits are deferred."""

from __future__ import annotations

import torch

from boleir.errors import LaunchError

_KINDS: dict[tuple[object, ...], int] = {}


class PoolLayer:
    """One layer: `state` [slots, HV, d_v, d_k] and, where the recurrence convolves its inputs,
    `window` [slots, channels, width - 1] with the newest entry last. Within a slot both are
    contiguous."""

    __slots__ = (
        "kind", "parameters", "pending", "pointers", "recorded", "recorded_kind", "state",
        "strides", "tensors", "window",
    )  # fmt: skip

    def __init__(self, state: torch.Tensor, window: torch.Tensor | None = None) -> None:
        _require_slots("state", state, "[slots, HV, d_v, d_k]")
        if window is not None:
            _require_slots("window", window, "[slots, channels, width - 1]")
            if window.device != state.device:
                raise LaunchError(f"window lies on {window.device}, state on {state.device}")
            if window.shape[0] != state.shape[0]:
                raise LaunchError(f"window has {window.shape[0]} slots, state has {state.shape[0]}")
        self.state = state
        self.window = window
        self.parameters: tuple[torch.Tensor, ...] | None = None
        """The layer's parameters, since a commit to it has been deferred."""
        self.keep(None, None, ())

    def keep(
        self,
        recorded: torch.Tensor | None,
        pending: torch.Tensor | None,
        kind: tuple[object, ...],
    ) -> None:
        """Take memory for deferred commits: `recorded` [slots, positions, channels], tokens of the
        accepted path, and `pending` [slots, counts], how many of them wait. `kind`: whose tokens
        they are."""
        self.recorded, self.pending, self.recorded_kind = recorded, pending, kind
        none = self.state[:0]
        rest = (self.window, recorded, pending)
        self.tensors = (self.state, *(none if t is None else t for t in rest))
        """State, window, recorded tokens and their counts; empty where there are none."""
        self.pointers = (self.state.data_ptr(), *(0 if t is None else t.data_ptr() for t in rest))
        strides = [0 if t is None else t.stride(0) for t in (self.state, self.window, recorded)]
        self.strides = tuple(strides)
        """Distance between slots of the first three, in elements."""
        formats = [(t.shape, t.stride(), t.dtype, t.device) for t in self.tensors]
        self.kind = _KINDS.setdefault((self.window is None, *formats), len(_KINDS))
        """A number that layers of equal formats share: what a check depends on."""

    @property
    def slots(self) -> int:
        """Number of slots."""
        return self.state.shape[0]

    def require_flushed(self, slot: int | None = None) -> None:
        """Refuse to take states for the present ones while tokens wait to be walked. Waits for the
        GPU; inside graph capture, where that is not possible, nothing is checked."""
        if self.pending is None or (
            self.pending.is_cuda and torch.cuda.is_current_stream_capturing()
        ):
            return
        if bool((self.pending if slot is None else self.pending[slot]).any()):
            where = "the pool" if slot is None else f"slot {slot}"
            raise LaunchError(
                f"{where} holds a state that accepted tokens still wait for",
                mend="kernel.flush(pool)",
            )

    def forget(self, slot: int) -> None:
        """Nothing waits for a slot that gets another state."""
        if self.pending is not None:
            self.pending[slot].zero_()


def _require_slots(name: str, tensor: torch.Tensor, axes: str) -> None:
    """Refuse a tensor of other `axes`, or whose slots are not contiguous inside or share memory."""
    if not isinstance(tensor, torch.Tensor):
        raise LaunchError(f"{name} is a {type(tensor).__name__}, expected a tensor {axes}")
    if tensor.ndim != axes.count(",") + 1:
        raise LaunchError(f"{name} is {list(tensor.shape)}, expected {axes}")
    expected = 1
    for size, stride in zip(reversed(tensor.shape[1:]), reversed(tensor.stride()[1:]), strict=True):
        if size > 1 and stride != expected:
            raise LaunchError(
                f"{name} [{', '.join(map(str, tensor.shape))}] has strides {tensor.stride()}; "
                f"only the distance between slots is free: {axes}, each slot contiguous"
            )
        expected *= size
    if tensor.shape[0] > 1 and tensor.stride(0) < expected:
        raise LaunchError(
            f"{name} [{', '.join(map(str, tensor.shape))}] has strides {tensor.stride()}: "
            "slots overlap"
        )
