@triton.jit
def values(
    cu_nodes, slots, v, v_stride, state, state_stride, decayed, capacity, rows, ancestors, folded, out,
    out_stride,
):
    """One value tile per program: the state read once, times the folded factors."""
    program = tl.program_id(0)
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    value = value_tile * B_V + tl.arange(0, B_V)
    key_c0 = tl.arange(0, B_K)
    key_c1 = 32 + tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    slot = tl.load(slots + request)
    v_rows = v + first * v_stride + head * D_V
    v_step = v_stride.to(tl.int32)
    v_tile = tl.load(v_rows + (node * v_step)[None, :] + value[:, None], mask=inside[None, :], other=0.0)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile_c0 = tl.load(state_rows + key_c0[None, :], eviction_policy="evict_first")
    state_tile_c1 = tl.load(state_rows + key_c1[None, :], eviction_policy="evict_first")
    state_tile_c0_top = ((state_tile_c0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c0_hi = state_tile_c0_top.to(tl.bfloat16)
    state_tile_c0_lo = (state_tile_c0 - state_tile_c0_top).to(tl.bfloat16)
    state_tile_c1_top = ((state_tile_c1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c1_hi = state_tile_c1_top.to(tl.bfloat16)
    state_tile_c1_lo = (state_tile_c1 - state_tile_c1_top).to(tl.bfloat16)

    # what follows reads results of the factors kernel
    tl.extra.cuda.gdc_wait()

    # products of the committed state with what has decayed along the paths
    decayed_0_rows = decayed + (head * capacity + first) * D_K
    k_decayed_c0 = tl.load(decayed_0_rows + (node * D_K)[:, None] + key_c0[None, :], mask=inside[:, None],
        other=0.0)
    k_decayed_c0_top = ((k_decayed_c0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    k_decayed_c0_hi = k_decayed_c0_top.to(tl.bfloat16)
    k_decayed_c0_lo = (k_decayed_c0 - k_decayed_c0_top).to(tl.bfloat16)
    state_dot_k = tl.dot(state_tile_c0_hi, tl.trans(k_decayed_c0_lo))
    state_dot_k = tl.dot(state_tile_c0_lo, tl.trans(k_decayed_c0_hi), state_dot_k)
    state_dot_k = tl.dot(state_tile_c0_hi, tl.trans(k_decayed_c0_hi), state_dot_k)
    k_decayed_c1 = tl.load(decayed_0_rows + (node * D_K)[:, None] + key_c1[None, :], mask=inside[:, None],
        other=0.0)
    k_decayed_c1_top = ((k_decayed_c1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    k_decayed_c1_hi = k_decayed_c1_top.to(tl.bfloat16)
    k_decayed_c1_lo = (k_decayed_c1 - k_decayed_c1_top).to(tl.bfloat16)
    state_dot_k = tl.dot(state_tile_c1_hi, tl.trans(k_decayed_c1_lo), state_dot_k)
    state_dot_k = tl.dot(state_tile_c1_lo, tl.trans(k_decayed_c1_hi), state_dot_k)
    state_dot_k = tl.dot(state_tile_c1_hi, tl.trans(k_decayed_c1_hi), state_dot_k)
    decayed_1_rows = decayed + ((VALUE_HEADS + head) * capacity + first) * D_K
    r_decayed_c0 = tl.load(decayed_1_rows + (node * D_K)[:, None] + key_c0[None, :], mask=inside[:, None],
        other=0.0)
    r_decayed_c0_top = ((r_decayed_c0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    r_decayed_c0_hi = r_decayed_c0_top.to(tl.bfloat16)
    r_decayed_c0_lo = (r_decayed_c0 - r_decayed_c0_top).to(tl.bfloat16)
    state_dot_r = tl.dot(state_tile_c0_hi, tl.trans(r_decayed_c0_lo))
    state_dot_r = tl.dot(state_tile_c0_lo, tl.trans(r_decayed_c0_hi), state_dot_r)
    state_dot_r = tl.dot(state_tile_c0_hi, tl.trans(r_decayed_c0_hi), state_dot_r)
    r_decayed_c1 = tl.load(decayed_1_rows + (node * D_K)[:, None] + key_c1[None, :], mask=inside[:, None],
        other=0.0)
    r_decayed_c1_top = ((r_decayed_c1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    r_decayed_c1_hi = r_decayed_c1_top.to(tl.bfloat16)
    r_decayed_c1_lo = (r_decayed_c1 - r_decayed_c1_top).to(tl.bfloat16)
    state_dot_r = tl.dot(state_tile_c1_hi, tl.trans(r_decayed_c1_lo), state_dot_r)
    state_dot_r = tl.dot(state_tile_c1_lo, tl.trans(r_decayed_c1_hi), state_dot_r)
    state_dot_r = tl.dot(state_tile_c1_hi, tl.trans(r_decayed_c1_hi), state_dot_r)
    out_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    out_row = tl.load(out_row_at + node, mask=inside, other=0.0)
    erase_row_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    erase_row = tl.load(erase_row_at + node, mask=inside, other=0.0)
    bad = tl.zeros([], tl.int64)

    # right side: R = r - P (e^T S_pre)
    # u: rwkv7.bole:13
    right = 0.0 - erase_row[None, :] * state_dot_k
    right_lost = tl.sum(tl.sum(right * 0.0, axis=1), axis=0)
    right_ok = tl.abs(right) < 3.0e38
    right = tl.where(right_ok, right, 0.0)
    if right_lost != 0.0:
        bad = (bad | tl.sum((1 - tl.min(tl.where(right_ok, 1, 0), axis=0)).to(tl.int64) << (node
            & 63).to(tl.int64), axis=0))
    right_top = ((right.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    right_hi = right_top.to(tl.bfloat16)
    right_lo = (right - right_top).to(tl.bfloat16)
    v_f32 = v_tile.to(tl.float32)
    v_finite = v_f32
    v_finite_lost = tl.sum(tl.sum(v_finite * 0.0, axis=1), axis=0)
    v_finite_ok = tl.abs(v_finite) < 3.0e38
    v_finite = tl.where(v_finite_ok, v_finite, 0.0)
    if v_finite_lost != 0.0:
        bad = (bad | tl.sum((1 - tl.min(tl.where(v_finite_ok, 1, 0), axis=0)).to(tl.int64) << (node
            & 63).to(tl.int64), axis=0))
    v_finite_16 = v_finite.to(tl.bfloat16)
    if bad != 0:
        word = tl.load(ancestors + first + node, mask=inside, other=0)
        out_row = tl.where((word & bad) != 0, float("nan"), out_row)

    # output: P (q^T S_pre) + F (r - e^T S_pre)
    # readout: rwkv7.bole:14
    out_tile = out_row[None, :] * state_dot_r
    place = folded + (program // VALUE_TILES).to(tl.int64) * 4 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    folded_0_0 = tl.load(place + cell)
    folded_0_1 = tl.load(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_tile = tl.dot(right_hi, tl.trans(folded_0_1), out_tile)
    out_tile = tl.dot(right_lo, tl.trans(folded_0_0), out_tile)
    out_tile = tl.dot(right_hi, tl.trans(folded_0_0), out_tile)
    folded_1_0 = tl.load(place + 2 * (NODE_BLOCK * NODE_BLOCK) + cell)
    folded_1_1 = tl.load(place + 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_tile = tl.dot(v_finite_16, tl.trans(folded_1_1), out_tile)
    out_tile = tl.dot(v_finite_16, tl.trans(folded_1_0), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


