@triton.jit
def one_tile(
    program, cu_nodes, signals, slots, v, v_stride, state, state_stride, folded, rows, capacity, ancestors,
    out, out_stride,
):
    """One value tile per program: the state read once, times the folded factors."""
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    signals_head = signals + (request * KEY_HEADS + key_head) * (1 + GROUP * VALUE_TILES)
    seen_at = signals_head + 1 + head % GROUP * VALUE_TILES + value_tile
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
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)
    bad = tl.zeros([], tl.int64)
    v_f32 = v_tile.to(tl.float32)
    v_finite = v_f32
    v_finite_lost = tl.sum(tl.sum(v_finite * 0.0, axis=1), axis=0)
    v_finite_ok = tl.abs(v_finite) < 3.0e38
    v_finite = tl.where(v_finite_ok, v_finite, 0.0)
    if v_finite_lost != 0.0:
        bad = (bad | tl.sum((1 - tl.min(tl.where(v_finite_ok, 1, 0), axis=0)).to(tl.int64) << (node
            & 63).to(tl.int64), axis=0))
    v_finite_16 = v_finite.to(tl.bfloat16)

    # what follows reads results of the programs that walk for this head
    walked = launch * WALKING
    while tl.atomic_add(signals_head, 0, sem="acquire") - walked < 0:
        pass
    tl.store(seen_at, launch)
    place = folded + (request * KEY_HEADS + key_head).to(tl.int64) * (1 * (NODE_BLOCK * NODE_BLOCK) + 8192)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    folded_0 = tl.load(place + cell)
    q_decayed = tl.load(place + 4096 + (node * 128)[:, None] + key[None, :])
    out_row_at = rows + (4 * VALUE_HEADS + key_head) * capacity + first
    out_row = tl.load(out_row_at + node, mask=inside, other=0.0)

    # products of the committed state with what has decayed along the paths
    q_decayed_bits = q_decayed.to(tl.int32, bitcast=True)
    q_decayed_hi = (q_decayed_bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    q_decayed_lo = q_decayed_bits.to(tl.int16).to(tl.bfloat16, bitcast=True)
    state_dot_q = tl.dot(state_tile_hi, tl.trans(q_decayed_lo))
    state_dot_q = tl.dot(state_tile_lo, tl.trans(q_decayed_hi), state_dot_q)
    state_dot_q = tl.dot(state_tile_hi, tl.trans(q_decayed_hi), state_dot_q)
    # NaN where a node's own inputs are not finite: for all nodes below it, too
    out_row_lost = tl.sum(out_row * 0.0, axis=0)
    if (out_row_lost != 0.0) | (bad != 0):
        bad = bad | tl.sum(tl.where(out_row == out_row, 0, 1).to(tl.int64) << node.to(tl.int64), axis=0)
        word = tl.load(ancestors + first + node, mask=inside, other=0)
        poisoned = (word & bad) != 0
        out_row = tl.where(poisoned, float("nan"), out_row)

    # output: P (q^T S_pre) + F (r - e^T S_pre)
    # readout: gla.bole:10
    out_tile = out_row[None, :] * state_dot_q
    folded_0_bits = folded_0.to(tl.int32, bitcast=True)
    folded_0_hi = (folded_0_bits >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True)
    folded_0_lo = folded_0_bits.to(tl.int16).to(tl.bfloat16, bitcast=True)
    out_tile = tl.dot(v_finite_16, tl.trans(folded_0_lo), out_tile)
    out_tile = tl.dot(v_finite_16, tl.trans(folded_0_hi), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


