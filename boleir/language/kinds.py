"""The typing rules, as tables: which kinds meet in which operation, and what comes of it.

Both front ends build expressions through `boleir.language.build`, which looks its answers up here;
there is no other place that knows, say, that a key vector times a state is a state. A shape is a
kind, with `^T` when transposed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from boleir.ir import Dot, Kind, Outer, Read, ReadKey

HEAD, KEY, VALUE, STATE = Kind.HEAD, Kind.KEY, Kind.VALUE, Kind.STATE

NOUN: Mapping[Kind, str] = MappingProxyType(
    {HEAD: "a head scalar", KEY: "a key vector", VALUE: "a value vector", STATE: "a state"}
)
"""How messages name a kind."""

SUM: Mapping[tuple[Kind, Kind], Kind] = MappingProxyType(
    {(kind, kind): kind for kind in Kind}
    | {(HEAD, KEY): KEY, (KEY, HEAD): KEY, (HEAD, VALUE): VALUE, (VALUE, HEAD): VALUE}
)
"""`+` and `-`: equal kinds, or a head scalar with a vector (every entry)."""

PRODUCT: Mapping[tuple[Kind, Kind], Kind] = MappingProxyType(
    {(HEAD, kind): kind for kind in Kind}
    | {(kind, HEAD): kind for kind in Kind}
    | {(KEY, KEY): KEY, (VALUE, VALUE): VALUE}
    | {(KEY, STATE): STATE, (STATE, KEY): STATE, (VALUE, STATE): STATE, (STATE, VALUE): STATE}
)
"""`*`: elementwise; a vector with a state scales its rows (key) or its columns (value)."""

QUOTIENT: Mapping[tuple[Kind, Kind], Kind] = MappingProxyType(
    {(kind, HEAD): kind for kind in Kind} | {(KEY, KEY): KEY, (VALUE, VALUE): VALUE}
)
"""`/`: by a head scalar, or by a vector of the same kind."""

RECIPROCAL: Mapping[tuple[Kind, Kind], Kind] = MappingProxyType(
    {(HEAD, KEY): KEY, (HEAD, VALUE): VALUE, (STATE, KEY): STATE, (STATE, VALUE): STATE}
)
"""`/` that becomes a product with the reciprocal of the right operand."""

Product = type[Outer] | type[Dot] | type[Read] | type[ReadKey]
"""The nodes of the matrix products."""

MATRIX: Mapping[tuple[str, str], tuple[Product, bool, bool, Kind]] = MappingProxyType(
    {
        ("key", "value^T"): (Outer, False, False, STATE),
        ("value", "key^T"): (Outer, True, True, STATE),
        ("key^T", "key"): (Dot, False, False, HEAD),
        ("value^T", "value"): (Dot, False, False, HEAD),
        ("state^T", "key"): (Read, False, False, VALUE),
        ("key^T", "state"): (Read, True, True, VALUE),
        ("state", "value"): (ReadKey, False, False, KEY),
        ("value^T", "state^T"): (ReadKey, True, True, KEY),
    }
)
"""Juxtaposition and `@`: the node, whether its operands are swapped, whether it comes out
transposed, its kind.
"""

PRODUCTS_THAT_EXIST = (
    "k v^T (outer), x^T y of one kind (dot), S^T k (read), S v (read along the values), "
    "and * elementwise"
)
