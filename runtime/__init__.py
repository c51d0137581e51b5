"""Loading, launching, state and diagnosis: what a serving process needs.

Imported as `boleir.runtime`. The folder stands beside `boleir/` for the reader's sake; under its
bare name it would collide with other distributions, so that name is refused.
"""

if __name__ != "boleir.runtime":
    raise ImportError(f"import this package as boleir.runtime, not as {__name__!r}")
