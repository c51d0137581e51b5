"""The topology step on a GPU: what follows from the parents of a batch, in one launch.

One program takes one request and one lane one ancestor word of a node. All lanes walk towards their
roots at the same time and set the bits of the nodes they pass. A step is one load of a parent, out
of the first-level cache after the first touch, so a launch takes about as many such loads as the
deepest tree has levels. There is no scratch memory and no host synchronisation, and nothing that a
parent may hold leads outside the request: one that does not come before its child is no parent.

This file is compiled as it stands, also without the rest of the package around it.
"""

# Kernel arguments are typed by their values at launch, so the kernels carry no annotations.
# mypy: disable-error-code="no-untyped-def"

from __future__ import annotations

import triton
import triton.language as tl

_STEPS = tl.constexpr(8)
_NOTHING = tl.constexpr(1 << 30)


@triton.jit
def _above(row, node):
    """The sound parent of each node; -1 above a root, and one less with every step beyond it."""
    parent = tl.load(row + node, mask=node >= 0, other=-1)
    sound = tl.where((parent >= 0) & (parent < node), parent, -1)
    return tl.where(node >= 0, sound, node - 1)


@triton.jit
def _bit(node, word):
    """The bit of `node` if it lies in this lane's ancestor word, else 0; also 0 beyond a root."""
    return tl.where(node >> 6 == word, 1 << (node & 63).to(tl.int64), 0)


@triton.jit
def _first_fault(row, node, count, too_deep, MAX_NODES: tl.constexpr):
    """Code (`boleir.trees.Fault`) and number of the first faulty node; 0, 0 when all is sound."""
    valid = node < tl.minimum(count, MAX_NODES)
    parent = tl.load(row + node, mask=valid, other=-1)
    fault = tl.where(too_deep, 3, 0)
    fault = tl.where(parent >= node, 2, fault)
    fault = tl.where((parent < -1) | (parent >= count), 1, fault)
    first = tl.min(tl.where(valid & (fault > 0), node * 8 + fault, _NOTHING))
    code = tl.where(first < _NOTHING, first % 8, 0)
    place = tl.where(first < _NOTHING, first // 8, 0)
    code = tl.where(count > MAX_NODES, 4, tl.where(count < 0, 5, code))
    return code, tl.where((count > MAX_NODES) | (count < 0), 0, place)


@triton.jit
def topology(
    parents,
    cu_nodes,
    ancestors,
    depth,
    near,
    flags,
    MAX_NODES: tl.constexpr,
    MAX_DEPTH: tl.constexpr,
    CONV_WIDTH: tl.constexpr,
    WORDS: tl.constexpr,
):
    """Derive one request per program; the grid is the number of requests.

    Args:
        parents: int32[N], local to the request, -1 for a root.
        cu_nodes: int32[B + 1].
        ancestors: int64[N, WORDS], written: bit j % 64 of word j // 64 iff j is i or above i.
        depth: int32[N], written.
        near: int32[N, CONV_WIDTH - 1], written: nearest ancestors, then -1 - r into the window.
        flags: int32[B, 2], written: fault code and node (0, 0 when sound); None to skip the check.
        MAX_NODES: most nodes of a request, 1 up to 64 * WORDS; nodes beyond it are not touched.
        MAX_DEPTH: most edges below a root; a node below that counts as a root of its own.
        CONV_WIDTH: taps of the convolution, at least 1.
        WORDS: ancestor words per node.
    """
    LANES: tl.constexpr = triton.next_power_of_2(MAX_NODES) * triton.next_power_of_2(WORDS)
    request = tl.program_id(0).to(tl.int64)
    start = tl.load(cu_nodes + request)
    count = tl.load(cu_nodes + request + 1) - start
    row = parents + start.to(tl.int64)
    node = tl.arange(0, LANES) // triton.next_power_of_2(WORDS)
    word = tl.arange(0, LANES) % triton.next_power_of_2(WORDS)
    valid = node < tl.minimum(count, MAX_NODES)
    own = _bit(node, word)
    bits = own
    length = tl.zeros([LANES], tl.int32)
    current = tl.where(valid, node, -1)
    # Node 0 is always a root: nothing is missing once every walk is there or has left the tree.
    while tl.max(current) > 0:
        for _ in tl.static_range(_STEPS):
            current = _above(row, current)
            bits |= _bit(current, word)
            length += (current >= 0).to(tl.int32)
    too_deep = length > MAX_DEPTH
    out = start.to(tl.int64) + node
    once = valid & (word == 0)
    bits = tl.where(too_deep, own, bits)
    tl.store(ancestors + out * WORDS + word, bits, mask=valid & (word < WORDS))
    tl.store(depth + out, tl.where(too_deep, 0, length), mask=once)
    current = tl.where(too_deep, -1, _above(row, tl.where(valid, node, -1)))
    for m in tl.static_range(CONV_WIDTH - 1):
        tl.store(near + out * (CONV_WIDTH - 1) + m, current, mask=once)
        current = _above(row, current)
    if flags is not None:
        code, place = _first_fault(row, node, count, too_deep, MAX_NODES)
        tl.store(flags + 2 * request, code)
        tl.store(flags + 2 * request + 1, place)
