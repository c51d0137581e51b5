"""What a change of emitted text does to outputs: a test must be able to notice it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from boleir.codegen import pipeline


def errors_of(
    mutations: Mapping[str, tuple[str, str]], error: Callable[[], float], flags: int = 0
) -> dict[str, float]:
    """`error` with each pattern of the emitted text replaced; "" is the text as it is. A mutation
    that changes nothing gives -1."""
    original = pipeline.module_text
    reports = {}
    for label, (pattern, text) in {"": ("^", ""), **mutations}.items():
        changed = 0

        def mutated(*arguments: Any, pattern: str = pattern, text: str = text) -> str:
            nonlocal changed
            source, changed = re.subn(pattern, text, original(*arguments), flags=flags)
            return source

        pipeline.module_text = mutated  # type: ignore[assignment]
        found = error()
        reports[label] = found if changed else -1.0
    pipeline.module_text = original
    return reports
