@triton.jit
def verify(
    cu_nodes, slots, state, state_stride, ancestors, rows, capacity, v, v_stride, q, q_stride, k, k_stride, a,
    a_stride, b, b_stride, depths, out, out_stride,
):
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
    state_tile = tl.load(state_rows + key[None, :], mask=(value < D_V)[:, None] & (key < D_K)[None, :],
        other=0.0, eviction_policy="evict_first")
    # what follows reads results of the previous kernel
    tl.extra.cuda.gdc_wait()
    word = tl.load(ancestors + first + node, mask=inside, other=0)
    # guard_q: iplr.bole:6
    guard_q_at = rows + key_head * capacity + first
    guard_q = tl.load(guard_q_at + node, mask=inside, other=0.0)
    # guard_k: iplr.bole:6
    guard_k_at = rows + (VALUE_HEADS + key_head) * capacity + first
    guard_k = tl.load(guard_k_at + node, mask=inside, other=0.0)
    # guard_v: iplr.bole:6
    guard_v_at = rows + (2 * VALUE_HEADS + head) * capacity + first
    guard_v = tl.load(guard_v_at + node, mask=inside, other=0.0)
    # guard_a: iplr.bole:6
    guard_a_at = rows + (3 * VALUE_HEADS + key_head) * capacity + first
    guard_a = tl.load(guard_a_at + node, mask=inside, other=0.0)
    # guard_b: iplr.bole:6
    guard_b_at = rows + (4 * VALUE_HEADS + key_head) * capacity + first
    guard_b = tl.load(guard_b_at + node, mask=inside, other=0.0)
    v_rows = v + first * v_stride + head * D_V
    v_step = v_stride.to(tl.int32)
    v_tile = tl.load(v_rows + (node * v_step)[None, :] + value[:, None],
        mask=inside[None, :] & (value < D_V)[:, None], other=0.0)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :],
        mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :],
        mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
    a_rows = a + first * a_stride + key_head * D_K
    a_step = a_stride.to(tl.int32)
    a_tile = tl.load(a_rows + (node * a_step)[:, None] + key[None, :],
        mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
    b_rows = b + first * b_stride + key_head * D_K
    b_step = b_stride.to(tl.int32)
    b_tile = tl.load(b_rows + (node * b_step)[:, None] + key[None, :],
        mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(guard_q) < 3.0e38) & (tl.abs(guard_k) < 3.0e38) & (tl.abs(guard_v) < 3.0e38)
        & (tl.abs(guard_a) < 3.0e38) & (tl.abs(guard_b) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # right side: R = r - P (e^T S_pre)
    # u: iplr.bole:8
    erased = tl.dot(state_tile_lo, tl.trans(a_tile))
    erased = tl.dot(state_tile_hi, tl.trans(a_tile), erased)
    scale = tl.full([NODE_BLOCK], -1.0, tl.float32)
    erased = scale[None, :] * erased
    right = 0.0 - erased
    right = tl.where(tl.abs(right) < 3.0e38, right, 0.0)

    # output: P (q^T S_pre)
    # readout: iplr.bole:9
    out_tile = tl.dot(state_tile_lo, tl.trans(q_tile))
    out_tile = tl.dot(state_tile_hi, tl.trans(q_tile), out_tile)
    scale_2 = tl.full([NODE_BLOCK], 0.12909944487358055, tl.float32)
    out_tile = scale_2[None, :] * out_tile

    # pure writes of the block's own nodes
    gram_a_k = tl.dot(k_tile, tl.trans(a_tile))
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[None, :] & (1 << (node & 31))[:, None]) != 0
    minus_seen = tl.where(related & (node[None, :] > node[:, None]), -scale[None, :] * gram_a_k, 0.0)
    v_f32 = v_tile.to(tl.float32)
    v_finite = tl.where(tl.abs(v_f32) < 3.0e38, v_f32, 0.0)
    v_finite_16 = v_finite.to(tl.bfloat16)
    minus_seen_top = ((minus_seen.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    minus_seen_hi = minus_seen_top.to(tl.bfloat16)
    minus_seen_rest = minus_seen - minus_seen_top
    minus_seen_mid = (minus_seen_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    minus_seen_lo = minus_seen_mid.to(tl.bfloat16)
    minus_seen_last = (minus_seen_rest - minus_seen_mid).to(tl.bfloat16)
    right = tl.dot(v_finite_16, minus_seen_last, right)
    right = tl.dot(v_finite_16, minus_seen_lo, right)
    right = tl.dot(v_finite_16, minus_seen_hi, right)
    gram_q_k = tl.dot(k_tile, tl.trans(q_tile))
    write_readout = tl.where(related, scale_2[None, :] * gram_q_k, 0.0)
    write_readout_top = ((write_readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    write_readout_hi = write_readout_top.to(tl.bfloat16)
    write_readout_rest = write_readout - write_readout_top
    write_readout_mid = (write_readout_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
        bitcast=True)
    write_readout_lo = write_readout_mid.to(tl.bfloat16)
    write_readout_last = (write_readout_rest - write_readout_mid).to(tl.bfloat16)
    out_tile = tl.dot(v_finite_16, write_readout_last, out_tile)
    out_tile = tl.dot(v_finite_16, write_readout_lo, out_tile)
    out_tile = tl.dot(v_finite_16, write_readout_hi, out_tile)

    # the block's own system: (I+G) U = R
    gram_a_b = tl.dot(b_tile, tl.trans(a_tile))
    minus_g = tl.where(related & (node[None, :] > node[:, None]), -scale[None, :] * gram_a_b, 0.0)
    minus_g_top = ((minus_g.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g_hi = minus_g_top.to(tl.bfloat16)
    minus_g_rest = minus_g - minus_g_top
    minus_g_mid = (minus_g_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    minus_g_lo = minus_g_mid.to(tl.bfloat16)
    minus_g_last = (minus_g_rest - minus_g_mid).to(tl.bfloat16)
    depth = tl.load(depths + first + node, mask=inside, other=-1)
    u = tl.where(depth[None, :] == 0, right, 0.0)
    for level in range(1, 21):
        u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        u_hi = u_top.to(tl.bfloat16)
        u_rest = u - u_top
        u_mid = (u_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        u_lo = u_mid.to(tl.bfloat16)
        u_last = (u_rest - u_mid).to(tl.bfloat16)
        u_swept = tl.dot(u_hi, minus_g_last, right)
        u_swept = tl.dot(u_lo, minus_g_lo, u_swept)
        u_swept = tl.dot(u_last, minus_g_hi, u_swept)
        u_swept = tl.dot(u_hi, minus_g_lo, u_swept)
        u_swept = tl.dot(u_lo, minus_g_hi, u_swept)
        u_swept = tl.dot(u_hi, minus_g_hi, u_swept)
        u = tl.where(depth[None, :] == level, u_swept, u)
    u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    u_hi = u_top.to(tl.bfloat16)
    u_rest = u - u_top
    u_mid = (u_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    u_lo = u_mid.to(tl.bfloat16)
    u_last = (u_rest - u_mid).to(tl.bfloat16)

    # output: + C U
    gram_q_b = tl.dot(b_tile, tl.trans(q_tile))
    readout = tl.where(related, scale_2[None, :] * gram_q_b, 0.0)
    readout_top = ((readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    readout_hi = readout_top.to(tl.bfloat16)
    readout_rest = readout - readout_top
    readout_mid = (readout_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    readout_lo = readout_mid.to(tl.bfloat16)
    readout_last = (readout_rest - readout_mid).to(tl.bfloat16)
    out_tile = tl.dot(u_hi, readout_last, out_tile)
    out_tile = tl.dot(u_lo, readout_lo, out_tile)
    out_tile = tl.dot(u_last, readout_hi, out_tile)
    out_tile = tl.dot(u_hi, readout_lo, out_tile)
    out_tile = tl.dot(u_lo, readout_hi, out_tile)
    out_tile = tl.dot(u_hi, readout_hi, out_tile)
    poisoned = (word & bad) != 0
    out_tile = tl.where(poisoned[None, :], float("nan"), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
        mask=inside[None, :] & (value < D_V)[:, None])


