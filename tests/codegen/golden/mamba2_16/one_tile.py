@triton.jit
def one_tile(
    program, cu_nodes, signals, slots, x, x_stride, state, state_stride, C, C_stride, B, B_stride, folded,
    rows, capacity, ancestors, out, out_stride,
):
    """One value tile per program: the state read once, times the folded factors."""
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head // GROUP
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
    x_rows = x + first * x_stride + head * D_V
    x_step = x_stride.to(tl.int32)
    x_tile = tl.load(x_rows + (node * x_step)[None, :] + value[:, None], mask=inside[None, :], other=0.0)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile = tl.load(state_rows + key[None, :], eviction_policy="evict_first")
    C_rows = C + first * C_stride + key_head * D_K
    C_step = C_stride.to(tl.int32)
    C_tile = tl.load(C_rows + (node * C_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    B_rows = B + first * B_stride + key_head * D_K
    B_step = B_stride.to(tl.int32)
    B_tile = tl.load(B_rows + (node * B_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)

    # products with the committed state, before any row scalar is needed
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)
    state_dot_C = tl.dot(state_tile_lo, tl.trans(C_tile))
    state_dot_C = tl.dot(state_tile_hi, tl.trans(C_tile), state_dot_C)

    # what follows reads results of the factors of this head
    while tl.atomic_add(signals_head, 0, sem="acquire") - launch < 0:
        pass
    tl.store(seen_at, launch)
    place = folded + (program // VALUE_TILES).to(tl.int64) * 2 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    folded_0_0 = tl.load(place + cell)
    folded_0_1 = tl.load(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_row_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    out_row = tl.load(out_row_at + node, mask=inside, other=0.0)
    delta_at = rows + (9 * VALUE_HEADS + head) * capacity + first
    delta = tl.load(delta_at + node, mask=inside, other=0.0)
    D_head_at = rows + (10 * VALUE_HEADS + head) * capacity + first
    D_head = tl.load(D_head_at + node, mask=inside, other=0.0)
    bad = tl.zeros([], tl.int64)
    x_f32 = x_tile.to(tl.float32)
    x_finite = delta[None, :] * x_f32
    x_finite_lost = tl.sum(tl.sum(x_finite * 0.0, axis=1), axis=0)
    x_finite_ok = tl.abs(x_finite) < 3.0e38
    x_finite = tl.where(x_finite_ok, x_finite, 0.0)
    if x_finite_lost != 0.0:
        bad = (bad | tl.sum((1 - tl.min(tl.where(x_finite_ok, 1, 0), axis=0)).to(tl.int64) << (node
            & 63).to(tl.int64), axis=0))
    x_finite_top = ((x_finite.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    x_finite_hi = x_finite_top.to(tl.bfloat16)
    x_finite_lo = (x_finite - x_finite_top).to(tl.bfloat16)
    if bad != 0:
        word = tl.load(ancestors + first + node, mask=inside, other=0)
        out_row = tl.where((word & bad) != 0, float("nan"), out_row)

    # output: P (q^T S_pre) + F (r - e^T S_pre)
    # readout: mamba2.bole:12
    out_tile = out_row[None, :] * state_dot_C
    out_tile = tl.dot(x_finite_hi, tl.trans(folded_0_1), out_tile)
    out_tile = tl.dot(x_finite_lo, tl.trans(folded_0_0), out_tile)
    out_tile = tl.dot(x_finite_hi, tl.trans(folded_0_0), out_tile)
    out_tile = out_tile + D_head[None, :] * x_f32
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


