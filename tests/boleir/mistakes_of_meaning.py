"""Mistakes of meaning, each with its message word for word: kinds, arguments, products."""

from __future__ import annotations

from boleir.language import errors
from tests.boleir.mistakes_of_writing import BODY, HEADER, Mistakes, body, whole

PRODUCTS = (
    "products are k v^T (outer), x^T y of one kind (dot), S^T k (read), "
    "S v (read along the values), and * elementwise"
)

MEANING: Mistakes = {
    "output of the wrong kind": (
        errors.MissingOutput,
        HEADER + "  S = exp(a) * S + k v^T\n  out q^T S\n",
        """
        <text>:3:7: the output must be a value vector, not a value vector transposed
              out q^T S
                  ^^^^^
          mend: transpose it
        """,
    ),
    "update of the wrong kind": (
        errors.MissingUpdate,
        whole("S = exp(a) * k"),
        """
        <text>:2:3: the new state must be a state, not a key vector
              S = exp(a) * k
              ^
        """,
    ),
    "convolution of a computed value": (
        errors.NotATokenInput,
        body("k = causal_conv(2 * k, width=4)"),
        """
        <text>:2:7: causal_conv takes a token input as it was declared, not a computed value
              k = causal_conv(2 * k, width=4)
                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^
          mend: convolve first, then compute
        """,
    ),
    "convolution of a rebound input": (
        errors.NotATokenInput,
        body("k = silu(k)\n  k = causal_conv(k, width=4)"),
        """
        <text>:3:7: causal_conv takes a token input as it was declared, not a computed value
              k = causal_conv(k, width=4)
                  ^^^^^^^^^^^^^^^^^^^^^^^
          mend: convolve first, then compute
        """,
    ),
    "convolution of a parameter": (
        errors.NotATokenInput,
        "recurrence r(q: key, v: value; k: key)\n  k = causal_conv(k, width=4)\n" + BODY,
        """
        <text>:2:7: causal_conv takes key and value vectors of the token; 'k' is a parameter of the layer
              k = causal_conv(k, width=4)
                  ^^^^^^^^^^^^^^^^^^^^^^^
        """,  # noqa: E501
    ),
    "convolution without width": (
        errors.BadArguments,
        body("k = causal_conv(k)"),
        """
        <text>:2:7: causal_conv needs width= a whole number from 2 to 32
              k = causal_conv(k)
                  ^^^^^^^^^^^^^^
          mend: width=4
        """,
    ),
    "unknown argument": (
        errors.BadArguments,
        body("k = causal_conv(k, widht=4)"),
        """
        <text>:2:22: causal_conv has no argument 'widht'
              k = causal_conv(k, widht=4)
                                 ^^^^^
          mend: did you mean 'width'?
        """,
    ),
    "wrong number of arguments": (
        errors.BadArguments,
        body("x = dot(k, q, q)"),
        """
        <text>:2:7: dot takes 2 arguments, not 3
              x = dot(k, q, q)
                  ^^^^^^^^^^^^
        """,
    ),
    "juxtaposition without meaning": (
        errors.NoSuchProduct,
        whole("S = S + k v"),
        f"""
        <text>:2:11: no product of a key vector and a value vector
              S = S + k v
                      ^^^
          mend: transposed, these exist: key value^T; {PRODUCTS}
        """,
    ),
    "two states multiplied": (
        errors.NoSuchProduct,
        whole("S = S S^T S"),
        """
        <text>:2:7: no product of a state and a state transposed
              S = S S^T S
                  ^^^^^
          mend: the state may enter linearly only
        """,
    ),
    "elementwise product of states": (
        errors.KindMismatch,
        whole("S = S * (k v^T)"),
        """
        <text>:2:7: '*' has no meaning between a state and a state
              S = S * (k v^T)
                  ^^^^^^^^^^^
          mend: an elementwise d_k x d_v factor has no matrix form; decay by a scalar or a vector
        """,
    ),
    "sum of different vectors": (
        errors.KindMismatch,
        whole("S = S + k (q + v)^T"),
        """
        <text>:2:14: '+' has no meaning between a key vector and a value vector
              S = S + k (q + v)^T
                         ^^^^^
        """,
    ),
    "scalar added to a state": (
        errors.KindMismatch,
        whole("S = 1 + S"),
        """
        <text>:2:7: '+' has no meaning between a head scalar and a state
              S = 1 + S
                  ^^^^^
          mend: a scalar may multiply a state, not be added to it
        """,
    ),
    "identity written as a number": (
        errors.KindMismatch,
        whole("S = (1 - k k^T) S"),
        """
        <text>:2:8: '-' has no meaning between a head scalar and a d_k x d_k matrix
              S = (1 - k k^T) S
                   ^^^^^^^^^
          mend: the identity is written I: I - beta * k k^T
        """,
    ),
    "elementwise where a matrix product is meant": (
        errors.KindMismatch,
        whole("S = S + k * v^T"),
        """
        <text>:2:11: '*' has no meaning between a key vector and a value vector transposed
              S = S + k * v^T
                      ^^^^^^^
          mend: write the matrix product without '*'
        """,
    ),
    "function of the state": (
        errors.KindMismatch,
        whole("S = a * tanh(S)"),
        """
        <text>:2:11: tanh takes a head scalar, a key vector or a value vector, not a state (the state may enter linearly only)
              S = a * tanh(S)
                      ^^^^^^^
        """,  # noqa: E501
    ),
    "diagonal of a scalar": (
        errors.KindMismatch,
        whole("S = diag(a) S"),
        """
        <text>:2:7: diag takes a key or value vector, not a head scalar
              S = diag(a) S
                  ^^^^^^^
          mend: a head scalar needs no diag: g * S
        """,
    ),
}
