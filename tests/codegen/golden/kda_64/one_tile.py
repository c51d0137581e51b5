@triton.jit
def one_tile(
    program, cu_nodes, signals, slots, v, v_stride, state, state_stride, rows, capacity, folded, out,
    out_stride,
):
    """One value tile per program: the state read once, times the folded factors."""
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    signals_head = signals + request * SIGNALS + 1 + head * (1 + VALUE_TILES)
    seen_at = signals_head + 1 + value_tile
    launch = tl.load(seen_at) + 1
    value = value_tile * B_V + tl.arange(0, B_V)
    key_c0 = tl.arange(0, B_K)
    key_c1 = 64 + tl.arange(0, B_K)
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

    # what follows reads what other programs prepare for this request
    prepared = launch * PREPARING
    while tl.atomic_add(signals + request * SIGNALS, 0, sem="acquire") - prepared < 0:
        pass

    # what multiplies rows of right sides
    # norm_k: kda.bole:10
    norm_k_at = rows + (2 * VALUE_HEADS + key_head) * capacity + first
    norm_k = tl.load(norm_k_at + node, mask=inside, other=0.0)
    erase_row = norm_k

    # products of the committed state with what has decayed along the paths
    place = folded + (program // VALUE_TILES).to(tl.int64) * (2 * (NODE_BLOCK * NODE_BLOCK) + 32768)
    k_decayed_c0_0 = tl.load(place + 8192 + (node * 128)[:, None] + key_c0[None, :])
    k_decayed_c0_1 = tl.load(place + 16384 + (node * 128)[:, None] + key_c0[None, :])
    state_dot_k = tl.dot(state_tile_c0_hi, tl.trans(k_decayed_c0_1))
    state_dot_k = tl.dot(state_tile_c0_lo, tl.trans(k_decayed_c0_0), state_dot_k)
    state_dot_k = tl.dot(state_tile_c0_hi, tl.trans(k_decayed_c0_0), state_dot_k)
    k_decayed_c1_0 = tl.load(place + 8192 + (node * 128)[:, None] + key_c1[None, :])
    k_decayed_c1_1 = tl.load(place + 16384 + (node * 128)[:, None] + key_c1[None, :])
    state_dot_k = tl.dot(state_tile_c1_hi, tl.trans(k_decayed_c1_1), state_dot_k)
    state_dot_k = tl.dot(state_tile_c1_lo, tl.trans(k_decayed_c1_0), state_dot_k)
    state_dot_k = tl.dot(state_tile_c1_hi, tl.trans(k_decayed_c1_0), state_dot_k)
    q_decayed_c0_0 = tl.load(place + 24576 + (node * 128)[:, None] + key_c0[None, :])
    q_decayed_c0_1 = tl.load(place + 32768 + (node * 128)[:, None] + key_c0[None, :])
    state_dot_q = tl.dot(state_tile_c0_hi, tl.trans(q_decayed_c0_1))
    state_dot_q = tl.dot(state_tile_c0_lo, tl.trans(q_decayed_c0_0), state_dot_q)
    state_dot_q = tl.dot(state_tile_c0_hi, tl.trans(q_decayed_c0_0), state_dot_q)
    q_decayed_c1_0 = tl.load(place + 24576 + (node * 128)[:, None] + key_c1[None, :])
    q_decayed_c1_1 = tl.load(place + 32768 + (node * 128)[:, None] + key_c1[None, :])
    state_dot_q = tl.dot(state_tile_c1_hi, tl.trans(q_decayed_c1_1), state_dot_q)
    state_dot_q = tl.dot(state_tile_c1_lo, tl.trans(q_decayed_c1_0), state_dot_q)
    state_dot_q = tl.dot(state_tile_c1_hi, tl.trans(q_decayed_c1_0), state_dot_q)

    # right side: R = r - P (e^T S_pre)
    # u: kda.bole:14
    v_f32 = v_tile.to(tl.float32)
    right = v_f32 - erase_row[None, :] * state_dot_k
    right = tl.where(tl.abs(right) < 3.0e38, right, 0.0)
    right_top = ((right.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    right_hi = right_top.to(tl.bfloat16)
    right_lo = (right - right_top).to(tl.bfloat16)

    # what follows reads results of the factors of this head
    while tl.atomic_add(signals_head, 0, sem="acquire") - launch < 0:
        pass
    tl.store(seen_at, launch)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    folded_0_0 = tl.load(place + cell)
    folded_0_1 = tl.load(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    out_row = tl.load(out_row_at + node, mask=inside, other=0.0)

    # output: P (q^T S_pre) + F (r - e^T S_pre)
    # readout: kda.bole:16
    out_tile = out_row[None, :] * state_dot_q
    out_tile = tl.dot(right_hi, tl.trans(folded_0_1), out_tile)
    out_tile = tl.dot(right_lo, tl.trans(folded_0_0), out_tile)
    out_tile = tl.dot(right_hi, tl.trans(folded_0_0), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


