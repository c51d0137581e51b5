@triton.jit
def one_tile(
    program, cu_nodes, signals, slots, state, state_stride, mixed, passing, folded, rows, capacity, out,
    out_stride,
):
    """One value tile per program: the state read once, times the folded factors."""
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    signals_head = signals + request * SIGNALS + 1 + head * (1 + VALUE_TILES)
    seen_at = signals_head + 1 + value_tile
    launch = tl.load(seen_at) + 1
    value = value_tile * B_V + tl.arange(0, B_V)
    key = tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile = tl.load(state_rows + key[None, :], eviction_policy="evict_first")

    # what follows reads what other programs prepare for this request
    prepared = launch * PREPARING
    while tl.atomic_add(signals + request * SIGNALS, 0, sem="acquire") - prepared < 0:
        pass
    v_rows = mixed + first * KEPT_CHANNELS + 2048 + head * D_V
    v_tile = tl.load(v_rows + (node * KEPT_CHANNELS)[None, :] + value[:, None], mask=inside[None, :],
        other=0.0)

    # products with the committed state, before any row scalar is needed
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)
    k_rows = mixed + first * KEPT_CHANNELS + key_head * D_K
    k_tile = tl.load(k_rows + (node * KEPT_CHANNELS)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    state_dot_k = tl.dot(state_tile_lo, tl.trans(k_tile))
    state_dot_k = tl.dot(state_tile_hi, tl.trans(k_tile), state_dot_k)
    q_rows = passing + first * PASSING_CHANNELS + key_head * D_K
    q_tile = tl.load(q_rows + (node * PASSING_CHANNELS)[:, None] + key[None, :], mask=inside[:, None],
        other=0.0)
    state_dot_q = tl.dot(state_tile_lo, tl.trans(q_tile))
    state_dot_q = tl.dot(state_tile_hi, tl.trans(q_tile), state_dot_q)

    # what follows reads results of the factors of this head
    while tl.atomic_add(signals_head, 0, sem="acquire") - launch < 0:
        pass
    tl.store(seen_at, launch)
    place = folded + (program // VALUE_TILES).to(tl.int64) * 2 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    folded_0_0 = tl.load(place + cell)
    folded_0_1 = tl.load(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    out_row = tl.load(out_row_at + node, mask=inside, other=0.0)
    erase_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    erase_row = tl.load(erase_row_at + node, mask=inside, other=0.0)

    # right side: R = r - P (e^T S_pre)
    # u: gdn.bole:15
    v_f32 = v_tile.to(tl.float32)
    right = v_f32 - erase_row[None, :] * state_dot_k
    right = tl.where(tl.abs(right) < 3.0e38, right, 0.0)
    right_top = ((right.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    right_hi = right_top.to(tl.bfloat16)
    right_lo = (right - right_top).to(tl.bfloat16)

    # output: P (q^T S_pre) + F (r - e^T S_pre)
    # readout: gdn.bole:17
    out_tile = out_row[None, :] * state_dot_q
    out_tile = tl.dot(right_hi, tl.trans(folded_0_1), out_tile)
    out_tile = tl.dot(right_lo, tl.trans(folded_0_0), out_tile)
    out_tile = tl.dot(right_hi, tl.trans(folded_0_0), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


