@triton.jit
def values(
    cu_nodes, slots, state, state_stride, q, q_stride, rows, capacity, ancestors, depths, unknowns, v,
    v_stride, g, g_stride, out, out_stride,
):
    """Walks up the paths: outputs of a value tile from the state and what ancestors wrote."""
    program = tl.program_id(0)
    value_tile = program % 2
    node_tile = program // 2 % 2
    head = program // 2 // 2 % VALUE_HEADS
    request = program // 2 // 2 // VALUE_HEADS
    key_head = head // GROUP
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    node = node_tile * 32 + tl.arange(0, 32)
    inside = node < count
    key = tl.arange(0, 128)
    value = value_tile * B_V + tl.arange(0, B_V)
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[None, :] * D_K

    # what the queries read of the committed state
    key_c0 = tl.arange(0, 32)
    state_tile_c0 = tl.load(state_rows + key_c0[:, None], mask=(value < D_V)[None, :], other=0.0,
        eviction_policy="evict_first")
    state_tile_c0_hi = state_tile_c0.to(tl.bfloat16)
    state_tile_c0_top = state_tile_c0_hi.to(tl.float32)
    state_tile_c0_rest = state_tile_c0 - state_tile_c0_top
    state_tile_c0_mid = (state_tile_c0_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c0_lo = state_tile_c0_mid.to(tl.bfloat16)
    state_tile_c0_last = (state_tile_c0_rest - state_tile_c0_mid).to(tl.bfloat16)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile_c0 = tl.load(q_rows + (node * q_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    read = tl.dot(q_tile_c0, state_tile_c0_last)
    read = tl.dot(q_tile_c0, state_tile_c0_lo, read)
    read = tl.dot(q_tile_c0, state_tile_c0_hi, read)
    key_c1 = 32 + tl.arange(0, 32)
    state_tile_c1 = tl.load(state_rows + key_c1[:, None], mask=(value < D_V)[None, :], other=0.0,
        eviction_policy="evict_first")
    state_tile_c1_hi = state_tile_c1.to(tl.bfloat16)
    state_tile_c1_top = state_tile_c1_hi.to(tl.float32)
    state_tile_c1_rest = state_tile_c1 - state_tile_c1_top
    state_tile_c1_mid = (state_tile_c1_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c1_lo = state_tile_c1_mid.to(tl.bfloat16)
    state_tile_c1_last = (state_tile_c1_rest - state_tile_c1_mid).to(tl.bfloat16)
    q_tile_c1 = tl.load(q_rows + (node * q_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    read = tl.dot(q_tile_c1, state_tile_c1_last, read)
    read = tl.dot(q_tile_c1, state_tile_c1_lo, read)
    read = tl.dot(q_tile_c1, state_tile_c1_hi, read)
    key_c2 = 64 + tl.arange(0, 32)
    state_tile_c2 = tl.load(state_rows + key_c2[:, None], mask=(value < D_V)[None, :], other=0.0,
        eviction_policy="evict_first")
    state_tile_c2_hi = state_tile_c2.to(tl.bfloat16)
    state_tile_c2_top = state_tile_c2_hi.to(tl.float32)
    state_tile_c2_rest = state_tile_c2 - state_tile_c2_top
    state_tile_c2_mid = (state_tile_c2_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c2_lo = state_tile_c2_mid.to(tl.bfloat16)
    state_tile_c2_last = (state_tile_c2_rest - state_tile_c2_mid).to(tl.bfloat16)
    q_tile_c2 = tl.load(q_rows + (node * q_step)[:, None] + key_c2[None, :], mask=inside[:, None], other=0.0)
    read = tl.dot(q_tile_c2, state_tile_c2_last, read)
    read = tl.dot(q_tile_c2, state_tile_c2_lo, read)
    read = tl.dot(q_tile_c2, state_tile_c2_hi, read)
    key_c3 = 96 + tl.arange(0, 32)
    state_tile_c3 = tl.load(state_rows + key_c3[:, None], mask=(value < D_V)[None, :], other=0.0,
        eviction_policy="evict_first")
    state_tile_c3_hi = state_tile_c3.to(tl.bfloat16)
    state_tile_c3_top = state_tile_c3_hi.to(tl.float32)
    state_tile_c3_rest = state_tile_c3 - state_tile_c3_top
    state_tile_c3_mid = (state_tile_c3_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c3_lo = state_tile_c3_mid.to(tl.bfloat16)
    state_tile_c3_last = (state_tile_c3_rest - state_tile_c3_mid).to(tl.bfloat16)
    q_tile_c3 = tl.load(q_rows + (node * q_step)[:, None] + key_c3[None, :], mask=inside[:, None], other=0.0)
    read = tl.dot(q_tile_c3, state_tile_c3_last, read)
    read = tl.dot(q_tile_c3, state_tile_c3_lo, read)
    read = tl.dot(q_tile_c3, state_tile_c3_hi, read)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    q_f32 = q_tile.to(tl.float32)
    # norm_q: gated_oja.bole:10
    norm_q_at = rows + (2 * VALUE_HEADS + key_head) * capacity + first
    norm_q = tl.load(norm_q_at + node, mask=inside, other=0.0)
    q_scaled = 0.08838834764831843 * norm_q[:, None] * q_f32

    # every node walks up its path; what it reads has decayed by what it has passed
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~(1 << (node & 63).to(tl.int64))
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=-1), axis=0)
    node_reached = tl.where(inside, node, -1)
    passed = tl.full([32, B_V], 1.0, tl.float32)
    out_tile = tl.zeros([32, B_V], tl.float32)
    poisoned = tl.zeros([32], tl.int32)
    for step in range(0, deepest + 1):
        inside_reached = node_reached >= 0
        own = node_reached == node
        # a non-finite input of the reached node
        # norm_k: gated_oja.bole:11
        norm_k_at = rows + key_head * capacity + first
        norm_k_reached = tl.load(norm_k_at + node_reached, mask=inside_reached, other=0.0)
        # beta: gated_oja.bole:12
        beta_at = rows + (VALUE_HEADS + head) * capacity + first
        beta_reached = tl.load(beta_at + node_reached, mask=inside_reached, other=0.0)
        # norm_q: gated_oja.bole:10
        norm_q_reached = tl.load(norm_q_at + node_reached, mask=inside_reached, other=0.0)
        # guard_v: gated_oja.bole:9
        guard_v_at = rows + (3 * VALUE_HEADS + head) * capacity + first
        guard_v_reached = tl.load(guard_v_at + node_reached, mask=inside_reached, other=0.0)
        # guard_g: gated_oja.bole:9
        guard_g_at = rows + (4 * VALUE_HEADS + head) * capacity + first
        guard_g_reached = tl.load(guard_g_at + node_reached, mask=inside_reached, other=0.0)
        poisoned = tl.where(inside_reached
            & ~(((norm_k_reached > 0.0) & (norm_k_reached < 3.0e38)) & (tl.abs(beta_reached) < 3.0e38)
            & ((norm_q_reached > 0.0) & (norm_q_reached < 3.0e38)) & (tl.abs(guard_v_reached) < 3.0e38)
            & (tl.abs(guard_g_reached) < 3.0e38)), 1, poisoned)
        u0_reached = tl.load((unknowns + (first + node_reached) * (VALUE_HEADS * D_K) + head * D_K)[:, None]
            + key[None, :], mask=inside_reached[:, None], other=0.0)
        share_0 = tl.sum(q_scaled * u0_reached, axis=1)
        v_rows = v + first * v_stride + head * D_V
        v_step = v_stride.to(tl.int32)
        v_tile_reached = tl.load(v_rows + (node_reached * v_step)[:, None] + value[None, :],
            mask=inside_reached[:, None] & (value < D_V)[None, :], other=0.0)
        v_f32_reached = v_tile_reached.to(tl.float32)
        out_tile = tl.where(inside_reached[:, None], out_tile + passed * (share_0[:, None] * v_f32_reached),
            out_tile)
        # decay: gated_oja.bole:13
        g_rows = g + first * g_stride + head * D_V
        g_step = g_stride.to(tl.int32)
        g_tile_reached = tl.load(g_rows + (node_reached * g_step)[:, None] + value[None, :],
            mask=inside_reached[:, None] & (value < D_V)[None, :], other=0.0)
        g_f32_reached = g_tile_reached.to(tl.float32)
        decay_reached = tl.where(inside_reached[:, None] & (value < D_V)[None, :],
            precise_exp(g_f32_reached), 1.0)
        passed = passed * decay_reached
        highest_0 = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        node_reached = tl.where(left_0 != 0, highest_0, -1)
        bit = 1 << (tl.maximum(node_reached, 0) & 63).to(tl.int64)
        left_0 = left_0 & ~bit

    # output: + P (q^T S_pre)
    # readout: gated_oja.bole:16
    out_tile = out_tile + passed * (0.08838834764831843 * norm_q[:, None] * read)
    out_tile = tl.where((poisoned != 0)[:, None], float("nan"), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[:, None] + value[None, :], out_tile.to(out.dtype.element_ty),
        mask=inside[:, None] & (value < D_V)[None, :])


