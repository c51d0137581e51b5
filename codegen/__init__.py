"""From a closed form to compiled kernels: schedules, Triton source, offline compilation.

Imported as `boleir.codegen`. The folder stands beside `boleir/` for the reader's sake; under its
bare name it would collide with other distributions, so that name is refused.
"""

if __name__ != "boleir.codegen":
    raise ImportError(f"import this package as boleir.codegen, not as {__name__!r}")
