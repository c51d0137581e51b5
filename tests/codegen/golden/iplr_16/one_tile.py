@triton.jit
def one_tile(
    program, cu_nodes, signals, slots, v, v_stride, state, state_stride, q, q_stride, k, k_stride, a,
    a_stride, b, b_stride, rows, capacity, ancestors, folded, out, out_stride,
):
    """One value tile per program: the state read once, times the folded factors."""
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    signals_head = signals + program // VALUE_TILES * (1 + VALUE_TILES)
    seen_at = signals_head + 1 + value_tile
    launch = tl.load(seen_at) + 1
    value = value_tile * B_V + tl.arange(0, B_V)
    key = tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    slot = tl.load(slots + request)
    v_rows = v + first * v_stride + head * D_V
    v_step = v_stride.to(tl.int32)
    v_tile = tl.load(v_rows + (node * v_step)[None, :] + value[:, None], mask=inside[None, :], other=0.0)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile = tl.load(state_rows + key[None, :], eviction_policy="evict_first")
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    a_rows = a + first * a_stride + key_head * D_K
    a_step = a_stride.to(tl.int32)
    a_tile = tl.load(a_rows + (node * a_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    b_rows = b + first * b_stride + key_head * D_K
    b_step = b_stride.to(tl.int32)
    b_tile = tl.load(b_rows + (node * b_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)

    # products with the committed state, before any row scalar is needed
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)
    state_dot_a = tl.dot(state_tile_lo, tl.trans(a_tile))
    state_dot_a = tl.dot(state_tile_hi, tl.trans(a_tile), state_dot_a)
    state_dot_q = tl.dot(state_tile_lo, tl.trans(q_tile))
    state_dot_q = tl.dot(state_tile_hi, tl.trans(q_tile), state_dot_q)

    # what follows reads results of the factors of this head
    while tl.atomic_add(signals_head, 0, sem="acquire") - launch < 0:
        pass
    tl.store(seen_at, launch)
    out_row_at = rows + (5 * VALUE_HEADS + head) * capacity + first
    out_row = tl.load(out_row_at + node, mask=inside, other=0.0)
    erase_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    erase_row = tl.load(erase_row_at + node, mask=inside, other=0.0)
    bad = tl.zeros([], tl.int64)

    # right side: R = r - P (e^T S_pre)
    # u: iplr.bole:8
    right = 0.0 - erase_row[None, :] * state_dot_a
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
    # readout: iplr.bole:9
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
    out_tile = tl.dot(v_finite_16, tl.trans(folded_1_1), out_tile)
    out_tile = tl.dot(v_finite_16, tl.trans(folded_1_0), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


