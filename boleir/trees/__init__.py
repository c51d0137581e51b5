"""Proposal trees on the host: numpy only, no device, no framework.

`Tree` is one tree; `check_trees` reads and checks a whole ragged batch; the other modules are the
ways in and out (networkx graphs, path lists, boolean masks, SGLang's links, EAGLE's candidates) and
the faults a tree can have.
"""

from __future__ import annotations

from boleir.trees.checking import check_trees
from boleir.trees.faults import Fault
from boleir.trees.ragged import MAX_NODES, WORD_BITS, Ragged, words_for
from boleir.trees.tree import Tree

__all__ = ["MAX_NODES", "WORD_BITS", "Fault", "Ragged", "Tree", "check_trees", "words_for"]
