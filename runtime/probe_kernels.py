"""Small matrix products with known answers, one for each way emitted kernels multiply.

Compilers have got several of these wrong on some GPUs. `boleir.runtime.doctor` compiles this file
as it would an emitted module, runs the kernels and compares. All take two 64 x 64 fp32 matrices
`a` and `b` and write a 64 x 64 fp32 matrix `out`.
"""

import triton
import triton.language as tl

N: tl.constexpr = tl.constexpr(64)
HALF: tl.constexpr = tl.constexpr(32)


@triton.jit
def _at(rows, columns):
    return rows[:, None] * N + columns[None, :]


@triton.jit
def ieee(a, b, out):
    """out = a b in fp32."""
    i = tl.arange(0, N)
    product = tl.dot(tl.load(a + _at(i, i)), tl.load(b + _at(i, i)), input_precision="ieee")
    tl.store(out + _at(i, i), product)


@triton.jit
def tf32(a, b, out):
    """out = a b with operands rounded to tf32."""
    i = tl.arange(0, N)
    product = tl.dot(tl.load(a + _at(i, i)), tl.load(b + _at(i, i)), input_precision="tf32")
    tl.store(out + _at(i, i), product)


@triton.jit
def bf16(a, b, out):
    """out = a b with operands rounded to bf16."""
    i = tl.arange(0, N)
    left = tl.load(a + _at(i, i)).to(tl.bfloat16)
    right = tl.load(b + _at(i, i)).to(tl.bfloat16)
    tl.store(out + _at(i, i), tl.dot(left, right))


@triton.jit
def split(a, b, out):
    """out = a b with each operand as a sum of two bf16 parts, in three passes."""
    i = tl.arange(0, N)
    left = tl.load(a + _at(i, i))
    right = tl.load(b + _at(i, i))
    left_high = left.to(tl.bfloat16)
    right_high = right.to(tl.bfloat16)
    left_low = (left - left_high.to(tl.float32)).to(tl.bfloat16)
    right_low = (right - right_high.to(tl.float32)).to(tl.bfloat16)
    product = tl.dot(left_low, right_high)
    product = tl.dot(left_high, right_low, product)
    tl.store(out + _at(i, i), tl.dot(left_high, right_high, product))


@triton.jit
def transposed(a, b, out):
    """out = (a b)^T b: a product whose operand is a transposed accumulator."""
    i = tl.arange(0, N)
    right = tl.load(b + _at(i, i)).to(tl.bfloat16)
    product = tl.dot(tl.load(a + _at(i, i)).to(tl.bfloat16), right)
    tl.store(out + _at(i, i), tl.dot(tl.trans(product).to(tl.bfloat16), right))


@triton.jit
def chained(a, b, out):
    """out = a b + b a: two products on one accumulator inside a loop."""
    i = tl.arange(0, N)
    j = tl.arange(0, HALF)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, N, HALF):
        a_columns = tl.load(a + _at(i, start + j)).to(tl.bfloat16)
        b_columns = tl.load(b + _at(i, start + j)).to(tl.bfloat16)
        a_rows = tl.load(a + _at(start + j, i)).to(tl.bfloat16)
        b_rows = tl.load(b + _at(start + j, i)).to(tl.bfloat16)
        total = tl.dot(a_columns, b_rows, total)
        total = tl.dot(b_columns, a_rows, total)
    tl.store(out + _at(i, i), total)
