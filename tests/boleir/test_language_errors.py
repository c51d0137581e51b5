"""Every mistake has one message, word for word: what, where, a caret, and the mend."""

from __future__ import annotations

import textwrap

import pytest

from boleir.errors import SpecError
from boleir.language import errors
from boleir.language.parser import parse_module

HEADER = "recurrence r(q: key, k: key, v: value, a: head)\n"
BODY = "  S = exp(a) * S + k v^T\n  out S^T q\n"

PRODUCTS = (
    "products are k v^T (outer), x^T y of one kind (dot), S^T k (read), "
    "S v (read along the values), and * elementwise"
)


def body(first: str, rest: str = BODY) -> str:
    """A recurrence whose first statement is `first`."""
    return f"{HEADER}  {first}\n{rest}"


def whole(statement: str) -> str:
    """A recurrence whose only other statement is the output."""
    return f"{HEADER}  {statement}\n  out S^T q\n"


GOLDEN: dict[str, tuple[type[SpecError], str, str]] = {
    "unknown name": (
        errors.UnknownName,
        body("S = gama * S").replace("a: head", "gamma: head"),
        """
        <text>:2:7: unknown name 'gama'
              S = gama * S
                  ^^^^
          mend: did you mean 'gamma'?
        """,
    ),
    "unknown function": (
        errors.UnknownName,
        body("b = sigmoit(a)"),
        """
        <text>:2:7: unknown name 'sigmoit'
              b = sigmoit(a)
                  ^^^^^^^
          mend: did you mean 'sigmoid'?
        """,
    ),
    "unknown name, nothing close": (
        errors.UnknownName,
        body("b = zzz"),
        """
        <text>:2:7: unknown name 'zzz'
              b = zzz
                  ^^^
          mend: known here: S, q, k, v, a
        """,
    ),
    "missing kind": (
        errors.UnknownKind,
        "recurrence r(q, k: key)\n" + BODY,
        """
        <text>:1:14: input 'q' has no kind
            recurrence r(q, k: key)
                         ^
          mend: q: key, for example; kinds are head (one number per head), key (d_k numbers) and value (d_v numbers)
        """,  # noqa: E501
    ),
    "unknown kind": (
        errors.UnknownKind,
        "recurrence r(q: kye, k: key)\n" + BODY,
        """
        <text>:1:17: unknown kind 'kye'
            recurrence r(q: kye, k: key)
                            ^^^
          mend: did you mean 'key'?
        """,
    ),
    "duplicate input": (
        errors.DuplicateName,
        "recurrence r(q: key; q: key)\n" + BODY,
        """
        <text>:1:22: input 'q' is declared twice (first in line 1, column 14)
            recurrence r(q: key; q: key)
                                 ^
          mend: rename one of them
        """,
    ),
    "local name assigned twice": (
        errors.DuplicateName,
        body("u = exp(a)\n  u = 2 * u"),
        """
        <text>:3:3: 'u' already has a value (line 2, column 3); only inputs and S may be assigned again
              u = 2 * u
              ^
          mend: choose another name, u' for example
        """,  # noqa: E501
    ),
    "one name twice in one statement": (
        errors.DuplicateName,
        body("x, x = exp(a, a)"),
        """
        <text>:2:6: 'x' is assigned twice in one statement
              x, x = exp(a, a)
                 ^
        """,
    ),
    "duplicate recurrence": (
        errors.DuplicateName,
        HEADER + BODY + HEADER + BODY,
        """
        <text>:4:12: recurrence 'r' is declared twice (first in line 1)
            recurrence r(q: key, k: key, v: value, a: head)
                       ^
          mend: rename one
        """,
    ),
    "unused input": (
        errors.UnusedInput,
        HEADER.replace("a: head", "a: head, z: key") + BODY,
        """
        <text>:1:49: input 'z' takes no part in the new state or the output
            recurrence r(q: key, k: key, v: value, a: head, z: key)
                                                            ^
          mend: use it or remove it
        """,
    ),
    "unused local": (
        errors.UnusedName,
        body("S' = exp(a) * S"),
        """
        <text>:2:3: 'S'' is computed and never read
              S' = exp(a) * S
              ^^
          mend: use it or remove the line
        """,
    ),
    "bracket never closed": (
        errors.UnbalancedBracket,
        whole("S = exp(a * S + k v^T"),
        """
        <text>:2:10: '(' is opened here and never closed
              S = exp(a * S + k v^T
                     ^
          mend: close it
        """,
    ),
    "bracket never opened": (
        errors.UnbalancedBracket,
        whole("S = exp(a)) * S + k v^T"),
        """
        <text>:2:13: ')' closes nothing: no '(' is open here
              S = exp(a)) * S + k v^T
                        ^
        """,
    ),
    "bracket closed by another": (
        errors.UnbalancedBracket,
        whole("S = exp(a] * S + k v^T"),
        """
        <text>:2:12: ']' cannot close the '(' of line 2, column 10
              S = exp(a] * S + k v^T
                       ^
        """,
    ),
    "no output": (
        errors.MissingOutput,
        HEADER + "  S = exp(a) * S + k v^T\n",
        """
        <text>:1:12: recurrence 'r' has no output
            recurrence r(q: key, k: key, v: value, a: head)
                       ^
          mend: out S^T q
        """,
    ),
    "no update": (
        errors.MissingUpdate,
        HEADER + "  out S^T q\n",
        """
        <text>:1:12: recurrence 'r' never assigns to S, so its state would never change
            recurrence r(q: key, k: key, v: value, a: head)
                       ^
          mend: S = S + k v^T
        """,
    ),
    "two outputs": (
        errors.DuplicateOutput,
        HEADER + BODY + "  out S^T k\n",
        """
        <text>:4:3: a second output (the first is in line 3)
              out S^T k
              ^^^
          mend: keep one 'out'
        """,
    ),
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
    "power": (
        errors.BadSyntax,
        whole("S = a^2 * S"),
        """
        <text>:2:8: '^' stands for the transpose only: x^T
              S = a^2 * S
                   ^
          mend: a square is written square(x) or x * x
        """,
    ),
    "augmented assignment": (
        errors.BadSyntax,
        whole("S += k v^T"),
        """
        <text>:2:5: there is no '+='
              S += k v^T
                ^^
          mend: write S = S + ...
        """,
    ),
    "return": (
        errors.BadSyntax,
        HEADER + "  S = exp(a) * S + k v^T\n  return S^T q\n",
        """
        <text>:3:3: 'return' begins no statement
              return S^T q
              ^^^^^^
          mend: the output is written: out S^T q
        """,
    ),
    "out as an assignment": (
        errors.BadSyntax,
        HEADER + "  S = exp(a) * S + k v^T\n  out = S^T q\n",
        """
        <text>:3:7: 'out' is followed by the output itself
              out = S^T q
                  ^
          mend: out S^T q
        """,
    ),
    "function without brackets": (
        errors.BadSyntax,
        whole("S = exp a * S"),
        """
        <text>:2:11: function 'exp' needs its argument in brackets
              S = exp a * S
                      ^
          mend: exp(...)
        """,
    ),
    "line that ends too early": (
        errors.BadSyntax,
        whole("S = exp(a) *"),
        """
        <text>:2:14: the line ends too early; expected an expression
              S = exp(a) *
                         ^
        """,
    ),
    "two values for one name": (
        errors.BadSyntax,
        body("x, y = exp(a)"),
        """
        <text>:2:10: 2 names for 1 value
              x, y = exp(a)
                     ^^^^^^
        """,
    ),
    "list inside an expression": (
        errors.BadSyntax,
        body("x = 1 + exp(a, a)"),
        """
        <text>:2:11: a list of 2 values stands where one value belongs
              x = 1 + exp(a, a)
                      ^^^^^^^^^
          mend: assign it to as many names: a, b = ...
        """,
    ),
    "something else altogether": (
        errors.BadSyntax,
        "def f(x):\n  return x\n",
        """
        <text>:1:1: expected a declaration
            def f(x):
            ^^^
          mend: declarations are: recurrence NAME(inputs; parameters), tree NAME = ...
        """,
    ),
    "misspelt declaration": (
        errors.BadSyntax,
        "recurence r(q: key)\n",
        """
        <text>:1:1: expected a declaration
            recurence r(q: key)
            ^^^^^^^^^
          mend: did you mean 'recurrence'?
        """,
    ),
    "function as a name": (
        errors.ReservedName,
        body("exp = 3"),
        """
        <text>:2:3: 'exp' is a function and cannot be a name
              exp = 3
              ^^^
          mend: call it 'exp_'
        """,
    ),
    "input with a fixed meaning": (
        errors.ReservedName,
        "recurrence r(S: key)\n",
        """
        <text>:1:14: 'S' has a fixed meaning and cannot name an input
            recurrence r(S: key)
                         ^
        """,
    ),
    "input that Python reserves": (
        errors.ReservedName,
        "recurrence r(lambda: head)\n",
        """
        <text>:1:14: 'lambda' is a reserved word
            recurrence r(lambda: head)
                         ^^^^^^
          mend: call it 'lambda_'
        """,
    ),
    "division by zero": (
        errors.BadConstant,
        body("x = a / (1 - 1)"),
        """
        <text>:2:7: division by zero
              x = a / (1 - 1)
                  ^^^^^^^^^^^
        """,
    ),
    "huge constant": (
        errors.BadConstant,
        body("x = a * 1e9999"),
        """
        <text>:2:11: the number is too long or its exponent too large
              x = a * 1e9999
                      ^^^^^^
        """,
    ),
    "NUL": (
        errors.BadCharacter,
        body("x = \x00"),
        """
        <text>:2:7: character U+0000 has no place here
              x = \ufffd
                  ^
        """,
    ),
    "stray character": (
        errors.BadCharacter,
        body("x = a ? 1 : 2"),
        """
        <text>:2:9: unexpected character '?'
              x = a ? 1 : 2
                    ^
        """,
    ),
    "tree without nodes": (
        errors.BadTree,
        "tree t = chain(0)",
        """
        <text>:1:10: tree t needs at least one node
            tree t = chain(0)
                     ^^^^^
        """,
    ),
    "child before parent": (
        errors.BadTree,
        "tree t = parents(-1, 0, 3, 1)",
        """
        <text>:1:25: node 2: parent 3 of tree t is neither -1 nor an earlier node
            tree t = parents(-1, 0, 3, 1)
                                    ^
          mend: number the nodes so that every parent comes before its children
        """,
    ),
    "tree with too few arguments": (
        errors.BadTree,
        "tree t = beam(width=4)",
        """
        <text>:1:10: beam needs width and depth
            tree t = beam(width=4)
                     ^^^^
          mend: beam(width=..., depth=...)
        """,
    ),
    "impossible bounds": (
        errors.BadTree,
        "tree t = dynamic(nodes=4, depth=9)",
        """
        <text>:1:10: tree t cannot have depth 9 with 4 nodes
            tree t = dynamic(nodes=4, depth=9)
                     ^^^^^^^
          mend: a depth between 0 and 3
        """,
    ),
    "unknown kind of tree": (
        errors.UnknownName,
        "tree t = chian(4)",
        """
        <text>:1:10: unknown kind of tree 'chian'
            tree t = chian(4)
                     ^^^^^
          mend: did you mean 'chain'?
        """,
    ),
}


@pytest.mark.parametrize("case", GOLDEN)
def test_messages(case: str) -> None:
    kind, text, message = GOLDEN[case]
    with pytest.raises(SpecError) as caught:
        parse_module(text)
    assert str(caught.value) == textwrap.dedent(message).strip("\n")
    assert type(caught.value) is kind


def test_every_class_of_the_text_language_is_met() -> None:
    met = {kind for kind, _, _ in GOLDEN.values()}
    elsewhere = {  # files, limits, Python functions, the library
        "BadEncoding",
        "TextTooLong",
        "NestingTooDeep",
        "BadSignature",
        "ControlFlow",
        "UnsupportedOperation",
        "UnknownRecurrence",
    }
    every = {
        item
        for item in vars(errors).values()
        if isinstance(item, type) and issubclass(item, SpecError) and item is not SpecError
    }
    assert {item.__name__ for item in every - met} == elsewhere


def test_carets_survive_tabs_and_long_lines() -> None:
    with pytest.raises(SpecError) as caught:
        parse_module(HEADER + "\tS = exp(b) * S\n")
    assert str(caught.value).splitlines()[1:3] == ["     S = exp(b) * S", "             ^"]
    padding = "a + " * 100
    with pytest.raises(SpecError) as caught:
        parse_module(HEADER + f"  x = {padding}zzz + {padding}a\n")
    shown, caret = str(caught.value).splitlines()[1:3]
    assert shown[caret.index("^") :].startswith("zzz")
    assert len(shown) < 140


def test_a_message_names_the_file() -> None:
    with pytest.raises(SpecError, match=r"^dir/my\.bole:1:1: "):
        parse_module("x", "dir/my.bole")


def test_terminal_escapes_never_reach_the_message() -> None:
    for text in ("\x1b[2J", "x = \x1b]0;title\x07", "\u202e x"):
        with pytest.raises(SpecError) as caught:
            parse_module(HEADER + text)
        assert str(caught.value).replace("\n", "").isprintable()
