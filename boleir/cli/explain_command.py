"""`bolec explain`: the closed form of a recurrence, derived and written out."""

from __future__ import annotations

import argparse

from boleir.cli.arguments import add_recurrence, find_recurrence, static_tree
from boleir.cli.output import print_json
from boleir.errors import TreeError

SUMMARY = "derive the closed form over a proposal tree and print the derivation"
EXAMPLES = (
    "bolec explain gdn",
    "bolec explain gdn --tree '-1,0,0,1,1,2'",
    "bolec explain gdn --tree 'chain(4)'",
    "bolec explain my.bole:rule --tree t    # a tree that the file declares",
    "bolec explain my.bole --latex > derivation.tex",
)
MOST_NODES = 64
"""Of a tree that is written out entry by entry: a chain of more says nothing to anybody."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_recurrence(parser)
    parser.add_argument(
        "--tree",
        help="also write G, C and (I + G)^-1 of this tree: -1,0,0,1, chain(4) or a declared one",
    )
    parser.add_argument("--latex", action="store_true", help="formulas in LaTeX")


def run(args: argparse.Namespace) -> None:
    """Derive and print."""
    recurrence = find_recurrence(args.recurrence)
    tree = None if args.tree is None else static_tree(args.tree, args.recurrence)
    if tree is not None and tree.max_nodes > MOST_NODES:
        raise TreeError(
            f"the tree has {tree.max_nodes} nodes; entry by entry, at most {MOST_NODES} are "
            "written out",
            mend="a smaller tree; without --tree the closed form of all trees",
        )
    from boleir.derive.derive import derive

    form = derive(recurrence)
    text = form.explain("latex" if args.latex else "text", tree.parents if tree else None)
    if args.json:
        print_json(
            {
                "recurrence": recurrence.name,
                "text": str(recurrence),
                "tree": str(tree) if tree else None,
                "explanation": text,
            }
        )
    else:
        print(text)
