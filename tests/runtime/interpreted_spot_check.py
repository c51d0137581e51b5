"""Run in a child process with TRITON_INTERPRET=1: errors of small kernels, as JSON."""

from __future__ import annotations

import json
import sys

import boleir
from boleir.runtime.spot_check import errors_of


def main() -> None:
    """Print the errors of each recurrence named on the command line."""
    found = {}
    for name in sys.argv[1:]:
        kernel = boleir.compile(
            name, key_heads=1, value_heads=2, d_k=32, d_v=24, max_nodes=9, max_depth=4
        )
        found[name] = errors_of(kernel, boleir.load(name))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
