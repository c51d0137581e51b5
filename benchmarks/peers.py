"""Imports the public kernels from the folder that `benchmarks.fetch_peers` filled.

Their packages import whole engines on loading. Only single files are needed, so empty parent
packages with the folder as their search path stand in, and the few helpers that those files take
from the engine are supplied here.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from benchmarks.fetch_peers import DEFAULT_FOLDER, HOW_TO

Kernel = Callable[..., Any]

SGLANG_PARENTS = (
    "sglang",
    "sglang.kernels",
    "sglang.kernels.jit",
    "sglang.kernels.ops",
    "sglang.kernels.ops.attention",
    "sglang.kernels.ops.attention.fla",
    "sglang.kernels.ops.attention.linear",
    "sglang.kernels.ops.mamba",
    "sglang.kernels.ops.memory",
    "sglang.srt",
)
FLA_PARENTS = ("fla.ops", "fla.modules")


class PeersMissingError(RuntimeError):
    """The folder with the public kernels is absent or incomplete."""

    def __init__(self, folder: Path, missing: str) -> None:
        super().__init__(f"no {missing} in {folder}; get the public kernels with: {HOW_TO}")


@dataclass(frozen=True, slots=True)
class SGLang:
    """SGLang 0.5.23's kernels around a gated delta rule layer."""

    verify: Kernel
    """`fused_sigmoid_gating_delta_rule_update`: serial over nodes; GDN and KDA."""
    conv: Kernel
    """`causal_conv1d_update`: serial over nodes, fills the parents from the links."""
    scatter: Kernel
    """`fused_mamba_state_scatter_with_mask`: accepted snapshots to the pool, all layers."""
    window_scatter: Kernel
    """`fused_conv_window_scatter_with_mask`: accepted windows to the pool, all layers."""
    replay_verify: Kernel
    """`gdn_replayssm_spec_decode`: chains only, no snapshots."""
    decode: Kernel
    """`fused_recurrent_gated_delta_rule_packed_decode`: one token, state in place."""


@dataclass(frozen=True, slots=True)
class Fla:
    """fla-core's gated delta rule, chains only."""

    recurrent: Kernel
    chunk: Kernel


def peers_folder(given: str | Path | None = None) -> Path:
    """The folder named by the argument, else by BOLEIR_PEERS, else the default."""
    return Path(given or os.environ.get("BOLEIR_PEERS") or DEFAULT_FOLDER).resolve()


def load_sglang(folder: Path) -> SGLang:
    """Import SGLang's kernels from `folder`; raises PeersMissingError."""
    _require(folder, "sglang")
    for name in SGLANG_PARENTS:
        _stand_in(name, folder)
    _stand_in("sglang.kernels.jit.utils", None, {"is_arch_support_pdl": _has_programmatic_launch})
    _stand_in(
        "sglang.srt.utils",
        None,
        {
            "get_device_sm": _compute_capability,
            "is_cuda": torch.cuda.is_available,
            "is_gfx95_supported": _never,
            "is_hip": _never,
            "is_sm90_supported": lambda: _compute_capability() // 10 == 9,
        },
    )
    release = tuple(int(part) for part in torch.__version__.split("+")[0].split(".")[:3])
    _stand_in(
        "sglang.srt.utils.common",
        None,
        {"torch_release": release, "get_device_core_count": _processor_count},
    )
    ops = "sglang.kernels.ops."
    linear, mamba = ops + "attention.linear.", ops + "mamba."
    serial = _module(linear + "fused_sigmoid_gating_recurrent", folder)
    replay = _module(linear + "gdn_replayssm_spec_decode", folder)
    conv = _module(mamba + "causal_conv1d_triton", folder)
    scatter = _module(mamba + "mamba_state_scatter_triton", folder)
    recurrent = _module(ops + "attention.fla.fused_recurrent", folder)
    return SGLang(
        verify=serial.fused_sigmoid_gating_delta_rule_update,
        conv=conv.causal_conv1d_update,
        scatter=scatter.fused_mamba_state_scatter_with_mask,
        window_scatter=scatter.fused_conv_window_scatter_with_mask,
        replay_verify=replay.gdn_replayssm_spec_decode,
        decode=recurrent.fused_recurrent_gated_delta_rule_packed_decode,
    )


def load_fla(folder: Path) -> Fla:
    """Import fla-core's gated delta rule from `folder`; raises PeersMissingError."""
    _prepare_fla(folder)
    rule = _module("fla.ops.gated_delta_rule", folder)
    return Fla(rule.fused_recurrent_gated_delta_rule, rule.chunk_gated_delta_rule)


def import_fla_file(folder: Path, name: str) -> Any:
    """One module of fla-core's `fla/ops`, its packages passed over; raises PeersMissingError."""
    _prepare_fla(folder)
    package = "fla.ops"
    for part in name.split(".")[:-1]:
        package = f"{package}.{part}"
        _stand_in(package, folder)
    return _module(f"fla.ops.{name}", folder)


def _prepare_fla(folder: Path) -> None:
    _require(folder, "fla")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    _module("fla", folder)
    for name in FLA_PARENTS:
        _stand_in(name, folder)


def _require(folder: Path, package: str) -> None:
    if not (folder / package).is_dir():
        raise PeersMissingError(folder, package)


def _module(name: str, folder: Path) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as failure:
        raise PeersMissingError(folder, f"module {failure.name}") from failure


def _stand_in(name: str, folder: Path | None, contents: Mapping[str, Any] | None = None) -> None:
    """Register an empty module; with `folder` it is a package whose files lie there."""
    if name in sys.modules:
        return
    module = ModuleType(name)
    if folder is not None:
        module.__path__ = [str(folder.joinpath(*name.split(".")))]
    vars(module).update(contents or {})
    sys.modules[name] = module
    parent, _, child = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], child, module)


def _never() -> bool:
    return False


def _compute_capability() -> int:
    """10 major + minor of the current GPU, 0 without one."""
    if not torch.cuda.is_available():
        return 0
    major, minor = torch.cuda.get_device_capability()
    return 10 * major + minor


def _has_programmatic_launch() -> bool:
    return _compute_capability() >= 90


def _processor_count(device: int = 0) -> int:
    if not torch.cuda.is_available():
        return 0
    return int(torch.cuda.get_device_properties(device).multi_processor_count)
