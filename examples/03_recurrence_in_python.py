"""Write a recurrence of your own as a Python function, see its derivation, prove it, run it.

The recurrence is a gated delta rule whose write strength fades with the length of the key: nobody
has written a kernel for it. The library derives the closed form over a tree, proves it against the
sequential recurrence in exact arithmetic, and then compares the kernels with it. Without a GPU the
kernels are interpreted on the CPU.

    python examples/03_recurrence_in_python.py
"""

from __future__ import annotations

import os

import torch

GPU = torch.cuda.is_available()
if not GPU:
    os.environ.setdefault("TRITON_INTERPRET", "1")

import boleir as bole  # noqa: E402
from boleir.check.check import check  # noqa: E402
from boleir.check.inputs import Case, Shape  # noqa: E402
from boleir.runtime.check_kernel import KernelUnderCheck  # noqa: E402


@bole.recurrence
def fading_delta_rule(
    S: bole.State, q: bole.Key, k: bole.Key, v: bole.Value, a: bole.Head, *, rate: bole.Head
):
    """One token: decay, correct what the state says about k, read with q."""
    decay = bole.sigmoid(a)
    strength = bole.exp(-rate * rate * bole.sum(bole.square(k)))
    k = bole.l2norm(k)
    S = decay * S
    S = S + k @ (strength * (v - S.T @ k)).T
    return S, S.T @ q / bole.sqrt(bole.d_k)


def main() -> None:
    """Run the example."""
    print(f"As text:\n\n{fading_delta_rule}")
    form = bole.derive(fading_delta_rule)
    print(form.explain())
    print("Entry by entry for a small tree:")
    print(form.explain(tree=(-1, 0, 0, 1)).partition("\nTree")[2])

    shape = Shape(key_heads=2, value_heads=4, d_k=64, d_v=48) if GPU else Shape(1, 2, 32, 16)
    kernel = bole.compile(
        fading_delta_rule,
        key_heads=shape.key_heads,
        value_heads=shape.value_heads,
        d_k=shape.d_k,
        d_v=shape.d_v,
        max_nodes=16,
        max_depth=15,
        out_dtype="float32",
    )
    over = [Case(tree, keys) for tree in ("random", "chain") for keys in ("random", "cosine")]
    report = check(
        fading_delta_rule,
        trees=5,
        over=over,
        kernels={repr(kernel): KernelUnderCheck(kernel)},
        kernel_shape=shape,
        kernel_nodes=9,
    )
    print(report)


if __name__ == "__main__":
    main()
