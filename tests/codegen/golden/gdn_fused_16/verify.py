@triton.jit
def verify(cu_nodes, slots, state, state_stride, ancestors, rows, capacity, mixed, passing, out, out_stride):
    """All nodes of a request against one read-only state; one value tile per program."""
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
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile = tl.load(state_rows + key[None, :], eviction_policy="evict_first")
    # what follows reads results of the previous kernel
    tl.extra.cuda.gdc_wait()
    word = tl.load(ancestors + first + node, mask=inside, other=0)
    # beta: gdn.bole:13
    beta_at = rows + head * capacity + first
    beta = tl.load(beta_at + node, mask=inside, other=0.0)
    # norm_k: gdn.bole:11
    norm_k_at = rows + (VALUE_HEADS + key_head) * capacity + first
    norm_k = tl.load(norm_k_at + node, mask=inside, other=0.0)
    # norm_q: gdn.bole:10
    norm_q_at = rows + (2 * VALUE_HEADS + key_head) * capacity + first
    norm_q = tl.load(norm_q_at + node, mask=inside, other=0.0)
    guard_v_at = rows + (3 * VALUE_HEADS + head) * capacity + first
    guard_v = tl.load(guard_v_at + node, mask=inside, other=0.0)
    # log-decay g, and c its sum over the path: gdn.bole:12
    c_at = rows + (4 * VALUE_HEADS + head) * capacity + first
    c = tl.load(c_at + node, mask=inside, other=0.0)
    c_rest_at = rows + (5 * VALUE_HEADS + head) * capacity + first
    c_rest = tl.load(c_rest_at + node, mask=inside, other=0.0)
    v_rows = mixed + first * KEPT_CHANNELS + 2048 + head * D_V
    v_tile = tl.load(v_rows + (node * KEPT_CHANNELS)[None, :] + value[:, None], mask=inside[None, :],
        other=0.0)
    q_rows = passing + first * PASSING_CHANNELS + key_head * D_K
    q_tile = tl.load(q_rows + (node * PASSING_CHANNELS)[:, None] + key[None, :], mask=inside[:, None],
        other=0.0)
    k_rows = mixed + first * KEPT_CHANNELS + key_head * D_K
    k_tile = tl.load(k_rows + (node * KEPT_CHANNELS)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(beta) < 3.0e38) & ((norm_k > 0.0) & (norm_k < 3.0e38))
        & ((norm_q > 0.0) & (norm_q < 3.0e38)) & (tl.abs(guard_v) < 3.0e38) & (tl.abs(c) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # right side: R = r - P (e^T S_pre)
    # u: gdn.bole:15
    erased = tl.dot(state_tile_lo, tl.trans(k_tile))
    erased = tl.dot(state_tile_hi, tl.trans(k_tile), erased)
    beta_norm_k = beta * norm_k
    erased = (tl.exp2(c + c_rest) * beta_norm_k)[None, :] * erased
    v_f32 = v_tile.to(tl.float32)
    right = beta[None, :] * v_f32 - erased
    right = tl.where(tl.abs(right) < 3.0e38, right, 0.0)

    # output: P (q^T S_pre)
    # readout: gdn.bole:17
    out_tile = tl.dot(state_tile_lo, tl.trans(q_tile))
    out_tile = tl.dot(state_tile_hi, tl.trans(q_tile), out_tile)
    scaled_norm_q = 0.08838834764831843 * norm_q
    out_tile = (tl.exp2(c + c_rest) * scaled_norm_q)[None, :] * out_tile

    # the block's own system: (I+G) U = R
    beta_norm_k_to = beta_norm_k * tl.exp2(c_rest)
    gram_k_k = tl.dot(k_tile, tl.trans(k_tile))
    norm_k_from = norm_k * tl.exp2(-c_rest)
    decay = tl.exp2(c[None, :] - c[:, None]) * norm_k_from[:, None]
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[None, :] & (1 << (node & 31))[:, None]) != 0
    minus_g = tl.where(related & (node[None, :] > node[:, None]),
        -beta_norm_k_to[None, :] * decay * gram_k_k, 0.0)
    minus_g_top = ((minus_g.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g_hi = minus_g_top.to(tl.bfloat16)
    minus_g_lo = (minus_g - minus_g_top).to(tl.bfloat16)
    right_top = ((right.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    right_hi = right_top.to(tl.bfloat16)
    right_lo = (right - right_top).to(tl.bfloat16)
    u = tl.dot(right_hi, minus_g_lo, right)
    u = tl.dot(right_lo, minus_g_hi, u)
    u = tl.dot(right_hi, minus_g_hi, u)
    u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    u_hi = u_top.to(tl.bfloat16)
    u_lo = (u - u_top).to(tl.bfloat16)
    u = tl.dot(u_hi, minus_g_lo, right)
    u = tl.dot(u_lo, minus_g_hi, u)
    u = tl.dot(u_hi, minus_g_hi, u)
    u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    u_hi = u_top.to(tl.bfloat16)
    u_lo = (u - u_top).to(tl.bfloat16)
    u = tl.dot(u_hi, minus_g_lo, right)
    u = tl.dot(u_lo, minus_g_hi, u)
    u = tl.dot(u_hi, minus_g_hi, u)
    u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    u_hi = u_top.to(tl.bfloat16)
    u_lo = (u - u_top).to(tl.bfloat16)
    u = tl.dot(u_hi, minus_g_lo, right)
    u = tl.dot(u_lo, minus_g_hi, u)
    u = tl.dot(u_hi, minus_g_hi, u)
    u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    u_hi = u_top.to(tl.bfloat16)
    u_lo = (u - u_top).to(tl.bfloat16)
    u = tl.dot(u_hi, minus_g_lo, right)
    u = tl.dot(u_lo, minus_g_hi, u)
    u = tl.dot(u_hi, minus_g_hi, u)
    u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    u_hi = u_top.to(tl.bfloat16)
    u_lo = (u - u_top).to(tl.bfloat16)

    # output: + C U
    scaled_norm_q_to = scaled_norm_q * tl.exp2(c_rest)
    gram_q_k = tl.dot(k_tile, tl.trans(q_tile))
    readout = tl.where(related, scaled_norm_q_to[None, :] * decay * gram_q_k, 0.0)
    readout_top = ((readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    readout_hi = readout_top.to(tl.bfloat16)
    readout_lo = (readout - readout_top).to(tl.bfloat16)
    out_tile = tl.dot(u_hi, readout_lo, out_tile)
    out_tile = tl.dot(u_lo, readout_hi, out_tile)
    out_tile = tl.dot(u_hi, readout_hi, out_tile)
    poisoned = (word & bad) != 0
    out_tile = tl.where(poisoned[None, :], float("nan"), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :])


