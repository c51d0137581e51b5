"""`bolec explain`: the closed form of a recurrence, derived and written out."""

from __future__ import annotations

import argparse

from boleir.cli.arguments import add_recurrence, find_recurrence, static_tree
from boleir.cli.output import print_json

SUMMARY = "derive the closed form over a proposal tree and print the derivation"
EXAMPLES = (
    "bolec explain gdn",
    "bolec explain gdn --tree '-1,0,0,1,1,2'",
    "bolec explain gdn --tree 'chain(4)'",
    "bolec explain my.bole --latex > derivation.tex",
)


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add_recurrence(parser)
    parser.add_argument(
        "--tree", help="also write G, C and (I + G)^-1 of this tree: -1,0,0,1 or chain(4)"
    )
    parser.add_argument("--latex", action="store_true", help="formulas in LaTeX")


def run(args: argparse.Namespace) -> None:
    """Derive and print."""
    recurrence = find_recurrence(args.recurrence)
    tree = None if args.tree is None else static_tree(args.tree)
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
