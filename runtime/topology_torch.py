"""The topology step in plain torch: the path for CPU tensors, with results equal to the kernel's.

It works on a dense [requests, max_nodes] view of the batch and doubles pointers, log2(max_nodes)
rounds whatever the trees look like. Parents that do not come before their children count as none,
nodes below the depth bound as roots, exactly as in the kernel.
"""

from __future__ import annotations

import torch

from boleir.trees import WORD_BITS, Fault

_NOTHING = 1 << 30


def derive_topology(
    parents: torch.Tensor,
    cu_nodes: torch.Tensor,
    ancestors: torch.Tensor,
    depth: torch.Tensor,
    near: torch.Tensor,
    flags: torch.Tensor | None,
    *,
    max_nodes: int,
    max_depth: int,
) -> None:
    """Write `ancestors`, `depth`, `near` and `flags` from `parents` and `cu_nodes`.

    Args:
        parents: int32[N], local to the request, -1 for a root.
        cu_nodes: int32[B + 1].
        ancestors: int64[N, W]; bit j % 64 of word j // 64 iff j is i or above i.
        depth: int32[N].
        near: int32[N, width - 1]; nearest ancestors, then -1 - r into the committed window.
        flags: int32[B, 2] for fault code and node, or None.
        max_nodes: most nodes of a request; nodes beyond it are not touched.
        max_depth: most edges below a root; a node below that counts as a root of its own.
    """
    counts = cu_nodes[1:] - cu_nodes[:-1]
    node = torch.arange(max_nodes, device=parents.device).expand(counts.numel(), max_nodes)
    place = cu_nodes[:-1, None] + node
    valid = (node < counts[:, None]) & (place >= 0) & (place < parents.numel())
    rows = place[valid]
    if not counts.numel():
        return
    given = torch.full(node.shape, -1, dtype=torch.int64, device=parents.device)
    given[valid] = parents[rows].long()
    sound = torch.where((given >= 0) & (given < node), given, -1)
    bits, length = _walk(sound, ancestors.shape[1])
    too_deep = length > max_depth
    own = _own_bits(max_nodes, ancestors.shape[1], parents.device)
    ancestors[rows] = torch.where(too_deep[..., None], own, bits)[valid]
    depth[rows] = torch.where(too_deep, 0, length)[valid].to(torch.int32)
    current = torch.where(too_deep, -1, sound)
    for m in range(near.shape[1]):
        near[rows, m] = current[valid].to(torch.int32)
        above = sound.gather(1, current.clamp(min=0))
        current = torch.where(current >= 0, above, current - 1)
    if flags is not None:
        flags.copy_(_first_faults(given, node, valid, counts, too_deep, max_nodes))


def _own_bits(nodes: int, words: int, device: torch.device) -> torch.Tensor:
    """int64[nodes, words] with only the node's own bit set."""
    node = torch.arange(nodes, device=device)[:, None]
    here = node // WORD_BITS == torch.arange(words, device=device)
    return torch.where(here, torch.ones_like(node) << (node % WORD_BITS), 0)


def _walk(sound: torch.Tensor, words: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Ancestor words int64[B, T, words] and depths int64[B, T] of parents int64[B, T]."""
    requests, nodes = sound.shape
    # One node more stands for "above a root": no bits, no length, its own parent.
    jump = torch.cat(
        [torch.where(sound < 0, nodes, sound), sound.new_full((requests, 1), nodes)], 1
    )
    own = torch.cat([_own_bits(nodes, words, sound.device), sound.new_zeros(1, words)])
    bits = own.expand(requests, -1, -1)
    length = (jump < nodes).long()
    for _ in range(max(1, nodes - 1).bit_length()):
        bits = bits | bits.gather(1, jump[..., None].expand(-1, -1, words))
        length = length + length.gather(1, jump)
        jump = jump.gather(1, jump)
    return bits[:, :nodes], length[:, :nodes]


def _first_faults(
    given: torch.Tensor,
    node: torch.Tensor,
    valid: torch.Tensor,
    counts: torch.Tensor,
    too_deep: torch.Tensor,
    max_nodes: int,
) -> torch.Tensor:
    """int32[B, 2]: code and number of the first faulty node of each request, (0, 0) when sound."""
    fault = torch.where(too_deep, int(Fault.TOO_DEEP), 0)
    fault = torch.where(given >= node, int(Fault.ORDER), fault)
    fault = torch.where((given < -1) | (given >= counts[:, None]), int(Fault.PARENT_RANGE), fault)
    first = torch.where(valid & (fault > 0), node * 8 + fault, _NOTHING).amin(1)
    found = first < _NOTHING
    code = torch.where(found, first % 8, 0)
    code = torch.where(counts < 0, int(Fault.SPAN), code)
    code = torch.where(counts > max_nodes, int(Fault.TOO_LARGE), code)
    whole = (counts < 0) | (counts > max_nodes)
    return torch.stack([code, torch.where(found & ~whole, first // 8, 0)], 1).to(torch.int32)
