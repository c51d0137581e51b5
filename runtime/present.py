"""Which GPU is here, for callers that do not import torch themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from boleir.codegen.targets import Target


def gpu_is_present() -> bool:
    """Whether torch finds a GPU."""
    import torch

    return torch.cuda.is_available()


def present_target() -> Target | None:
    """The best target for torch's current GPU, or None without one."""
    import torch

    from boleir.runtime.loader import device_target

    return device_target(torch.cuda.current_device()) if gpu_is_present() else None
