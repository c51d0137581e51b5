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
        HEADER + "  S = exp(a) * S + k v^T\n  out S v\n",
        """
        <text>:3:7: the output must be a value vector, not a key vector
              out S v
                  ^^^
          mend: out S^T q
        """,
    ),
    "update of the wrong kind": (
        errors.MissingUpdate,
        whole("S = exp(a) * k"),
        """
        <text>:2:3: the new state must be a state, not a key vector
              S = exp(a) * k
              ^
          mend: S = S + k v^T
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
        errors.ProductOfStateMatrices,
        whole("S = S S^T S"),
        """
        <text>:2:7: no product of a state and a state transposed: the state may enter linearly only
              S = S S^T S
                  ^^^^^
          mend: read it by vectors of the token: S^T k, S v
        """,
    ),
    "elementwise product of states": (
        errors.ElementwiseState,
        whole("S = S * (k v^T)"),
        """
        <text>:2:7: '*' has no meaning between a state and a state: a decay with a number of its own for every entry has no matrix form
              S = S * (k v^T)
                  ^^^^^^^^^^^
          mend: decay by a scalar, by key channels (diag(g) * S) or value channels (S * diag(h))
        """,  # noqa: E501
    ),
    "sum of different vectors": (
        errors.KindMismatch,
        whole("S = S + k (q + v)^T"),
        """
        <text>:2:14: '+' has no meaning between a key vector and a value vector
              S = S + k (q + v)^T
                         ^^^^^
          mend: vectors of different kinds meet in products: k v^T is a state
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
        errors.FunctionOfStateMatrix,
        whole("S = a * tanh(S)"),
        """
        <text>:2:11: tanh takes a head scalar, a key vector or a value vector, not a state (the state may enter linearly only)
              S = a * tanh(S)
                      ^^^^^^^
          mend: apply tanh to inputs of the token, or to the output outside
        """,  # noqa: E501
    ),
    "rounding": (
        errors.RoundedState,
        whole("S = bf16(a * S)"),
        """
        <text>:2:7: recurrences have no 'bf16': rounding inside a recurrence is not affine in the state
              S = bf16(a * S)
                  ^^^^
          mend: keep the state exact here; the pool's format (state_dtype) is chosen when compiling
        """,  # noqa: E501
    ),
    "softmax": (
        errors.SoftmaxOfState,
        whole("S = a * S + k softmax(v - S^T k)^T"),
        """
        <text>:2:17: recurrences have no 'softmax': a softmax is not affine in the state
              S = a * S + k softmax(v - S^T k)^T
                            ^^^^^^^
          mend: normalise what you read outside; for a linear normaliser append a column of ones to v
        """,  # noqa: E501
    ),
    "clip": (
        errors.ClipOfState,
        whole("S = clip(S, -1, 1) + a * k v^T"),
        """
        <text>:2:7: recurrences have no 'clip': clipping is not affine in the state
              S = clip(S, -1, 1) + a * k v^T
                  ^^^^
          mend: bound the gates instead: sigmoid, tanh and softplus of the inputs of the token
        """,
    ),
    "norm of the state": (
        errors.NormOfState,
        whole("S = S / norm(S) + a * k v^T"),
        """
        <text>:2:11: recurrences have no 'norm': dividing by a norm of the state is not affine in it
              S = S / norm(S) + a * k v^T
                      ^^^^
          mend: normalise key and value vectors (l2norm), or the output outside the recurrence
        """,
    ),
    "orthogonalised state": (
        errors.MatrixFunction,
        whole("S = S + newton_schulz(a * S + k v^T)"),
        """
        <text>:2:11: recurrences have no 'newton_schulz': a matrix function of the state is not affine in it
              S = S + newton_schulz(a * S + k v^T)
                      ^^^^^^^^^^^^^
          mend: write what the token adds: erase and write along vectors, u = v - S^T k, S + k u^T
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
