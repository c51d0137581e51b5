"""`bolec cache`: look at the store of tuned schedules, carry it elsewhere, tidy it."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from boleir.cli.output import print_json, table
from boleir.errors import CacheError

if TYPE_CHECKING:
    from boleir.runtime.tuning.entry import Entry
    from boleir.runtime.tuning.store import Store

SUMMARY = "list, show, export, import, merge or prune tuned schedules"
EXAMPLES = (
    "bolec cache list",
    "bolec cache show gdn                 # every candidate of the entries whose file says gdn",
    "bolec cache export tunings.json      # --force replaces the file",
    "bolec cache import tunings.json",
    "bolec cache merge /mnt/other/boleir/tuning",
    "bolec cache prune --dry-run          # what is damaged or unfinished",
    "bolec cache prune --keep h200        # remove other GPUs and versions",
    "bolec cache path",
)
ACTIONS = ("list", "show", "export", "import", "merge", "prune", "path")
FLAGS = ("--shipped", "--dry-run", "--force")
"""Options without a value; like those of all commands, they may stand anywhere."""
ARGUMENT = {"show": "part of a name", "export": "file", "import": "file", "merge": "folder"}
"""What the word after an action is; the others take none."""
OPTIONS = {
    "shipped": ("list", "show"),
    "keep": ("prune",),
    "dry_run": ("prune",),
    "force": ("export",),
}
"""The actions that an option means something to."""


def configure(parser: argparse.ArgumentParser) -> None:
    """The command's own options."""
    add = parser.add_argument
    add("action", choices=ACTIONS, help="what to do")
    add("argument", nargs="?", help="show: part of a file's name; export, import: FILE; merge: DIR")
    add("--shipped", action="store_true", help="list, show: what comes with the package as well")
    add("--keep", metavar="TEXT", help="prune: keep only environments whose folder contains TEXT")
    add("--dry-run", action="store_true", help="prune: only say what would be removed")
    add("--force", action="store_true", help="export: replace a file that is there")


def run(args: argparse.Namespace) -> None:
    """Do it. Raises `CacheError` for a file or folder that cannot be used, and for words that mean
    nothing to the action."""
    from boleir.runtime.tuning.store import Store

    _check_words(args)
    store = Store.writable() if args.action in ("import", "merge") else Store.default()
    action = {
        "list": _list, "show": _show, "export": _export, "import": _import, "merge": _merge,
        "prune": _prune, "path": _path,
    }[args.action]  # fmt: skip
    value, text = action(store, args)
    if args.json:
        print_json(value)
    elif text:
        print(text)


def _check_words(args: argparse.Namespace) -> None:
    """Refuse what the action would not look at, and the lack of what it needs."""
    what = ARGUMENT.get(args.action)
    if args.argument is not None and what is None:
        mend = f"--keep {args.argument}" if args.action == "prune" else None
        raise CacheError(f"cache {args.action} takes no argument {args.argument!r}", mend=mend)
    if args.argument is None and what is not None and args.action != "show":
        raise CacheError(f"cache {args.action} needs the {what}")
    for name, actions in OPTIONS.items():
        if getattr(args, name) and args.action not in actions:
            option = f"--{name.replace('_', '-')}"
            raise CacheError(f"cache {args.action} has no {option}, but {' and '.join(actions)}")


Answer = tuple[Any, str]
"""What --json prints, and what is printed without it."""


def _path(store: Store, args: argparse.Namespace) -> Answer:
    return {"path": str(store.root), "exists": store.root.is_dir()}, str(store.root)


def _list(store: Store, args: argparse.Namespace) -> Answer:
    entries = _entries(store, args)
    values, rows = [], []
    for where, entry in entries:
        found = _best(entry)
        us = None if found is None else found.us
        label = "nothing works" if found is None else found.schedule.label
        values.append(
            {
                "file": where,
                "environment": entry.environment.to_json(),
                "key": entry.key.to_json(),
                "us": us,
                "schedule": label,
                "candidates": len(entry.outcomes),
                "origin": entry.origin,
            }
        )
        tried = len(entry.outcomes) if entry.tuned else None
        rows.append((entry.environment.gpu, entry.key.name, us, tried, label))
    if not rows:
        return values, f"no tuned schedules in {store.root}"
    return values, table(("gpu", "tuned", "us", "tried", "schedule"), rows)


def _show(store: Store, args: argparse.Namespace) -> Answer:
    import json

    part = args.argument or ""
    entries = [(where, entry) for where, entry in _entries(store, args) if part in where]
    if not entries:
        raise CacheError(f"no entry has {part!r} in its name", mend="bolec cache list")
    values = [json.loads(entry.to_bytes())["content"] for _, entry in entries]
    return values, "\n\n".join(_shown(where, entry) for where, entry in entries)


def _shown(where: str, entry: Entry) -> str:
    """One entry with all its candidates, the fastest first, then the failures."""
    chosen = entry.chosen
    timed = sorted((o for o in entry.outcomes if o.us is not None), key=lambda o: o.us or 0.0)
    rows = [
        ("*" if o.schedule == chosen else "", o.us, f"{o.error or 0:.1e}", o.schedule.label)
        for o in timed
    ]
    env = entry.environment
    lines = [
        entry.key.name,
        f"  {env.gpu}, {env.arch}, Triton {env.triton}, ptxas {env.ptxas}; {entry.origin}",
        f"  {where}",
        table(("", "us", "error", "schedule"), rows),
    ]
    lines += [f"failed: {o.schedule.label}: {o.failure}" for o in entry.outcomes if not o.ok]
    return "\n".join(lines)


def _export(store: Store, args: argparse.Namespace) -> Answer:
    from boleir.runtime.tuning.exchange import write_bundle

    path = Path(args.argument)
    if path.exists() and not (args.force and path.is_file()):
        mend = "--force replaces it" if path.is_file() else None
        raise CacheError(f"{path} is there already", mend=mend)
    count = write_bundle((entry for _, entry in store.entries()), path)
    return {"exported": count, "file": args.argument}, f"{count} entries written to {args.argument}"


def _import(store: Store, args: argparse.Namespace) -> Answer:
    from boleir.runtime.tuning.exchange import add, read_bundle

    return _added(add(store, read_bundle(Path(args.argument))))


def _merge(store: Store, args: argparse.Namespace) -> Answer:
    from boleir.runtime.tuning.exchange import add
    from boleir.runtime.tuning.store import FOLDER, Store

    other = Store(Path(args.argument))
    if not other.root.is_dir():
        raise CacheError(f"{other.root} is no folder")
    if not other.files():
        inside = other.root / FOLDER
        mend = f"{inside}" if inside.is_dir() else "the folder that `bolec cache path` prints there"
        raise CacheError(f"{other.root} holds no tuned schedules", mend=mend)
    return _added(add(store, (entry for _, entry in other.entries())))


def _added(added: Any) -> Answer:
    text = f"{added.new} new, {added.extended} extended, {added.kept} kept as they were"
    return {"new": added.new, "extended": added.extended, "kept": added.kept}, text


def _prune(store: Store, args: argparse.Namespace) -> Answer:
    from boleir.runtime.tuning.exchange import prune

    removed = [str(path) for path in prune(store, args.keep, dry=args.dry_run)]
    verb = "would be removed" if args.dry_run else "removed"
    text = "\n".join([*removed, f"{len(removed)} {verb}"])
    return {"removed": removed, "dry_run": args.dry_run}, text


def _entries(store: Store, args: argparse.Namespace) -> list[tuple[str, Entry]]:
    from boleir.runtime.tuning.shipped import collections

    found = [(str(path.relative_to(store.root)), entry) for path, entry in store.entries()]
    if args.shipped:
        found += [(f"shipped {entry.key.file}", entry) for entry in collections()]
    return found


def _best(entry: Entry) -> Any:
    from boleir.runtime.tuning.choice import best

    return best(entry.outcomes, entry.policy.tie)
