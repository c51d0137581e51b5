"""Mistakes of writing, each with its message word for word: names, brackets, statements."""

from __future__ import annotations

from boleir.errors import SpecError
from boleir.language import errors

Mistakes = dict[str, tuple[type[SpecError], str, str]]
"""By name: the class of the error, the text that causes it, the message."""

HEADER = "recurrence r(q: key, k: key, v: value, a: head)\n"
BODY = "  S = exp(a) * S + k v^T\n  out S^T q\n"


def body(first: str, rest: str = BODY) -> str:
    """A recurrence whose first statement is `first`."""
    return f"{HEADER}  {first}\n{rest}"


def whole(statement: str) -> str:
    """A recurrence whose only other statement is the output."""
    return f"{HEADER}  {statement}\n  out S^T q\n"


WRITING: Mistakes = {
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
          mend: remove it, or write its '(' before it
        """,
    ),
    "two signs of equality": (
        errors.BadSyntax,
        whole("S == exp(a) * S + k v^T"),
        """
        <text>:2:6: there is no '=='
              S == exp(a) * S + k v^T
                 ^
          mend: a name is given by one '='
        """,
    ),
    "bracket closed by another": (
        errors.UnbalancedBracket,
        whole("S = exp(a] * S + k v^T"),
        """
        <text>:2:12: ']' cannot close the '(' of line 2, column 10
              S = exp(a] * S + k v^T
                       ^
          mend: close what was opened last first
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
    "one output twice": (
        errors.DuplicateOutput,
        HEADER + BODY + "  out S^T q\n",
        """
        <text>:4:7: this output is put out twice (first in line 3)
              out S^T q
                  ^^^^^
          mend: keep one of them
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
    "method": (
        errors.BadCharacter,
        body("x = a.exp()"),
        """
        <text>:2:8: unexpected character '.'
              x = a.exp()
                   ^
          mend: functions stand before what they are applied to: f(x)
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
    "power as in Python": (
        errors.BadSyntax,
        body("x = a**2"),
        """
        <text>:2:9: there is no '**'
              x = a**2
                    ^
          mend: a square is written square(x) or x * x
        """,
    ),
    "sign from a paper": (
        errors.BadCharacter,
        body("x = 1 \u2212 a"),
        """
        <text>:2:9: unexpected character '\u2212'
              x = 1 \u2212 a
                    ^
          mend: write -
        """,
    ),
    "two decimal points": (
        errors.BadConstant,
        body("x = a * 1.2.3"),
        """
        <text>:2:11: '1.2.3' is not a number
              x = a * 1.2.3
                      ^^^^^
        """,
    ),
    "argument given twice": (
        errors.BadArguments,
        body("k = causal_conv(k, width=4, width=3)"),
        """
        <text>:2:31: 'width' is given twice
              k = causal_conv(k, width=4, width=3)
                                          ^^^^^
        """,
    ),
    "input assigned and never read": (
        errors.UnusedName,
        HEADER + "  S = exp(a) * S + k v^T\n  k = 2 * k\n  out S^T q\n",
        """
        <text>:3:3: 'k' is computed and never read
              k = 2 * k
              ^
          mend: use it or remove the line
        """,
    ),
    "input assigned twice and read once": (
        errors.UnusedName,
        HEADER + "  S = exp(a) * S + k v^T\n  k = 2 * k\n  k = 3 * q\n  out S^T k\n",
        """
        <text>:3:3: 'k' is computed and never read
              k = 2 * k
              ^
          mend: use it or remove the line
        """,
    ),
}
