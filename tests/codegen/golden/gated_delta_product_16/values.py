@triton.jit
def values(
    cu_nodes, slots, v1, v1_stride, v2, v2_stride, state, state_stride, k1, k1_stride, k2, k2_stride, q,
    q_stride, rows, capacity, folded, out, out_stride,
):
    """One value tile per program: the state read once, times the folded factors."""
    program = tl.program_id(0)
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    value = value_tile * B_V + tl.arange(0, B_V)
    key = tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    slot = tl.load(slots + request)
    v1_rows = v1 + first * v1_stride + head * D_V
    v1_step = v1_stride.to(tl.int32)
    v1_tile = tl.load(v1_rows + (node * v1_step)[None, :] + value[:, None], mask=inside[None, :], other=0.0)
    v2_rows = v2 + first * v2_stride + head * D_V
    v2_step = v2_stride.to(tl.int32)
    v2_tile = tl.load(v2_rows + (node * v2_step)[None, :] + value[:, None], mask=inside[None, :], other=0.0)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile = tl.load(state_rows + key[None, :], eviction_policy="evict_first")

    # products with the committed state, before any row scalar is needed
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)
    k1_rows = k1 + first * k1_stride + key_head * D_K
    k1_step = k1_stride.to(tl.int32)
    k1_tile = tl.load(k1_rows + (node * k1_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    state_dot_k1 = tl.dot(state_tile_lo, tl.trans(k1_tile))
    state_dot_k1 = tl.dot(state_tile_hi, tl.trans(k1_tile), state_dot_k1)
    k2_rows = k2 + first * k2_stride + key_head * D_K
    k2_step = k2_stride.to(tl.int32)
    k2_tile = tl.load(k2_rows + (node * k2_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    state_dot_k2 = tl.dot(state_tile_lo, tl.trans(k2_tile))
    state_dot_k2 = tl.dot(state_tile_hi, tl.trans(k2_tile), state_dot_k2)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    state_dot_q = tl.dot(state_tile_lo, tl.trans(q_tile))
    state_dot_q = tl.dot(state_tile_hi, tl.trans(q_tile), state_dot_q)

    # what follows reads results of the factors kernel
    tl.extra.cuda.gdc_wait()
    out_row_at = rows + (10 * VALUE_HEADS + head) * capacity + first
    out_row = tl.load(out_row_at + node, mask=inside, other=0.0)
    erase_row_at = rows + (11 * VALUE_HEADS + head) * capacity + first
    erase_row = tl.load(erase_row_at + node, mask=inside, other=0.0)
    erase_row1_at = rows + (12 * VALUE_HEADS + head) * capacity + first
    erase_row1 = tl.load(erase_row1_at + node, mask=inside, other=0.0)
    sigmoid_b1_at = rows + (13 * VALUE_HEADS + head) * capacity + first
    sigmoid_b1 = tl.load(sigmoid_b1_at + node, mask=inside, other=0.0)
    sigmoid_b2_at = rows + (14 * VALUE_HEADS + head) * capacity + first
    sigmoid_b2 = tl.load(sigmoid_b2_at + node, mask=inside, other=0.0)

    # right side: R = r - P (e^T S_pre)
    # u: gated_delta_product.bole:14
    v1_f32 = v1_tile.to(tl.float32)
    right = 2.0 * sigmoid_b1[None, :] * v1_f32 - erase_row[None, :] * state_dot_k1
    right = tl.where(tl.abs(right) < 3.0e38, right, 0.0)
    right_top = ((right.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    right_hi = right_top.to(tl.bfloat16)
    right_lo = (right - right_top).to(tl.bfloat16)
    # u1: gated_delta_product.bole:16
    v2_f32 = v2_tile.to(tl.float32)
    right1 = 2.0 * sigmoid_b2[None, :] * v2_f32 - erase_row1[None, :] * state_dot_k2
    right1 = tl.where(tl.abs(right1) < 3.0e38, right1, 0.0)
    right1_top = ((right1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    right1_hi = right1_top.to(tl.bfloat16)
    right1_lo = (right1 - right1_top).to(tl.bfloat16)

    # output: P (q^T S_pre) + F (r - e^T S_pre)
    # readout: gated_delta_product.bole:18
    out_tile = out_row[None, :] * state_dot_q
    place = folded + (program // VALUE_TILES).to(tl.int64) * 4 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    folded_0_0 = tl.load(place + cell)
    folded_0_1 = tl.load(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_tile = tl.dot(right_hi, tl.trans(folded_0_1), out_tile)
    out_tile = tl.dot(right_lo, tl.trans(folded_0_0), out_tile)
    out_tile = tl.dot(right_hi, tl.trans(folded_0_0), out_tile)
    folded_1_0 = tl.load(place + 2 * (NODE_BLOCK * NODE_BLOCK) + cell)
    folded_1_1 = tl.load(place + 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_tile = tl.dot(right1_hi, tl.trans(folded_1_1), out_tile)
    out_tile = tl.dot(right1_lo, tl.trans(folded_1_0), out_tile)
    out_tile = tl.dot(right1_hi, tl.trans(folded_1_0), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


