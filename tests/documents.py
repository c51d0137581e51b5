"""Reading the documents of `docs/`: their code blocks, and what each is expected to print.

A block ```python runs as part of one script per document, in order; with `file: NAME` behind the
word it is a module of that name beside the script instead. A block ```sh holds one command. A
block ```text right behind either is what it prints. ```bole is text that has to be derivable, or
gives the error that a following ```text shows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^```(\w+)(?: file: (\S+))?\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """One code block; `start` and `end` bound the text of its expected output, if it has one."""

    language: str
    file: str | None
    code: str
    expected: str | None
    start: int = 0
    end: int = 0


def blocks(text: str) -> list[Block]:
    """The blocks of a document in order, each with the output block right behind it."""
    found = list(_FENCE.finditer(text))
    result = []
    for place, match in enumerate(found):
        after = found[place + 1] if place + 1 < len(found) else None
        language, file, code = match.groups()
        if language == "text":
            continue
        follows = after is not None and not text[match.end() : after.start()].strip()
        if after is not None and follows and after[1] == "text":
            result.append(Block(language, file, code, after[3], *after.span(3)))
        else:
            result.append(Block(language, file, code, None))
    return result


def with_outputs(path: Path, outputs: dict[int, str]) -> None:
    """Rewrite the expected outputs of a document; `outputs` is keyed by where each begins."""
    text = path.read_text(encoding="utf-8")
    for block in sorted(blocks(text), key=lambda b: -b.start):
        if block.expected is not None and block.start in outputs:
            text = text[: block.start] + outputs[block.start] + text[block.end :]
    path.write_text(text, encoding="utf-8")
