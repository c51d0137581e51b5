"""SGLang's link tensors on the device: parents without a word to the host.

The host adapter (`boleir.trees.links`) checks and refuses; here, inside captured graphs, links that
make no sense become parents that the topology step treats as roots and, in checked mode, reports.
"""

from __future__ import annotations

import torch

_UNREACHED = -2


def parents_of_links(
    next_token: torch.Tensor, next_sibling: torch.Tensor, active: torch.Tensor | None = None
) -> torch.Tensor:
    """Parents int32[B, T] of first-child and next-sibling links, integers [B, T].

    Node 0 is the root. A node that no link leads to gets -2. Siblings may be linked in any order:
    their rows are followed by pointer doubling, log2(T) gathers. `active`, bool[B], marks the rows
    in use; the others, whose links are stale, become T roots each.
    """
    batch, nodes = next_token.shape
    node = torch.arange(nodes, device=next_token.device).expand(batch, nodes)
    # Links that lead nowhere write into one column too many, which is then dropped.
    parents = _scatter(node.new_full((batch, nodes + 1), _UNREACHED), next_token, node)
    head = torch.arange(nodes + 1, device=next_token.device).repeat(batch, 1)
    head = _scatter(head, next_sibling, node)
    for _ in range(max(1, nodes - 1).bit_length()):
        head = head.gather(1, head)
    parents = parents.gather(1, head)[:, :nodes].to(torch.int32)
    return as_local_parents(parents, active)


def as_local_parents(parents: torch.Tensor, active: torch.Tensor | None = None) -> torch.Tensor:
    """Parents [B, T] with node 0 as a root (SGLang stores 0 there) and padded rows as T roots."""
    result = parents.clone()
    result[:, :1] = -1
    if active is not None:
        result.masked_fill_(~active[:, None], -1)
    return result


def _scatter(table: torch.Tensor, links: torch.Tensor, node: torch.Tensor) -> torch.Tensor:
    nodes = links.shape[1]
    inside = (links >= 0) & (links < nodes)
    return table.scatter(1, torch.where(inside, links.long(), nodes), node)
