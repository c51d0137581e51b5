@triton.jit
def values(
    cu_nodes, slots, state, state_stride, q, q_stride, ancestors, depths, rows, capacity, k, k_stride,
    unknowns, g, g_stride, out, out_stride,
):
    """Walks up the paths: outputs of a value tile from the state and what ancestors wrote."""
    program = tl.program_id(0)
    value_tile = program % 2
    head = program // 2 % VALUE_HEADS
    request = program // 2 // VALUE_HEADS
    key_head = head
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    node = tl.arange(0, 16)
    inside = node < count
    key = tl.arange(0, 64)
    value = value_tile * B_V + tl.arange(0, B_V)
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[None, :] * D_K

    # what the queries read of the committed state
    key_c0 = tl.arange(0, 32)
    state_tile_c0 = tl.load(state_rows + key_c0[:, None], eviction_policy="evict_first")
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
    state_tile_c1 = tl.load(state_rows + key_c1[:, None], eviction_policy="evict_first")
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
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    q_f32 = q_tile.to(tl.float32)

    # every node walks up its path; what it reads has decayed by what it has passed
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~(1 << (node & 63).to(tl.int64))
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=-1), axis=0)
    node_reached = tl.where(inside, node, -1)
    passed = tl.full([16, B_V], 1.0, tl.float32)
    out_tile = tl.zeros([16, B_V], tl.float32)
    poisoned = tl.zeros([16], tl.int32)
    for step in range(0, deepest + 1):
        inside_reached = node_reached >= 0
        own = node_reached == node
        # a non-finite input of the reached node
        # norm_k: <text>:3
        norm_k_at = rows + key_head * capacity + first
        norm_k_reached = tl.load(norm_k_at + node_reached, mask=inside_reached, other=0.0)
        # guard_q: <text>:2
        guard_q_at = rows + (VALUE_HEADS + key_head) * capacity + first
        guard_q_reached = tl.load(guard_q_at + node_reached, mask=inside_reached, other=0.0)
        # guard_v: <text>:2
        guard_v_at = rows + (2 * VALUE_HEADS + head) * capacity + first
        guard_v_reached = tl.load(guard_v_at + node_reached, mask=inside_reached, other=0.0)
        # guard_g: <text>:2
        guard_g_at = rows + (3 * VALUE_HEADS + head) * capacity + first
        guard_g_reached = tl.load(guard_g_at + node_reached, mask=inside_reached, other=0.0)
        # guard_b: <text>:2
        guard_b_at = rows + (4 * VALUE_HEADS + head) * capacity + first
        guard_b_reached = tl.load(guard_b_at + node_reached, mask=inside_reached, other=0.0)
        poisoned = tl.where(inside_reached
            & ~(((norm_k_reached > 0.0) & (norm_k_reached < 3.0e38)) & (tl.abs(guard_q_reached) < 3.0e38)
            & (tl.abs(guard_v_reached) < 3.0e38) & (tl.abs(guard_g_reached) < 3.0e38)
            & (tl.abs(guard_b_reached) < 3.0e38)), 1, poisoned)
        k_rows = k + first * k_stride + key_head * D_K
        k_step = k_stride.to(tl.int32)
        k_tile_reached = tl.load(k_rows + (node_reached * k_step)[:, None] + key[None, :],
            mask=inside_reached[:, None], other=0.0)
        k_f32_reached = k_tile_reached.to(tl.float32)
        k_scaled_reached = norm_k_reached[:, None] * k_f32_reached
        share_0 = tl.sum(q_f32 * k_scaled_reached, axis=1)
        u0_reached = tl.load((unknowns + (first + node_reached) * (VALUE_HEADS * D_V) + head * D_V)[:, None]
            + value[None, :], mask=inside_reached[:, None], other=0.0)
        out_tile = tl.where(inside_reached[:, None], out_tile + passed * (share_0[:, None] * u0_reached),
            out_tile)
        # decay: <text>:4
        g_rows = g + first * g_stride + head * D_V
        g_step = g_stride.to(tl.int32)
        g_tile_reached = tl.load(g_rows + (node_reached * g_step)[:, None] + value[None, :],
            mask=inside_reached[:, None], other=0.0)
        g_f32_reached = g_tile_reached.to(tl.float32)
        decay_reached = tl.where(inside_reached[:, None], precise_exp(g_f32_reached), 1.0)
        passed = passed * decay_reached
        highest_0 = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        node_reached = tl.where(left_0 != 0, highest_0, -1)
        bit = 1 << (tl.maximum(node_reached, 0) & 63).to(tl.int64)
        left_0 = left_0 & ~bit

    # output: + P (q^T S_pre)
    # readout: <text>:7
    out_tile = out_tile + passed * read
    out_tile = tl.where((poisoned != 0)[:, None], float("nan"), out_tile)
    out_tile = tl.where(slot >= 0, out_tile, 0.0)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    tl.store(out_rows + (node * out_step)[:, None] + value[None, :], out_tile.to(out.dtype.element_ty),
        mask=inside[:, None])


