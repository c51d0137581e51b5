@triton.jit
def verify(
    cu_nodes, slots, state, state_stride, products, capacity, decayed, out, out_stride, unknowns, rows, v,
    v_stride, ancestors,
):
    """All nodes of a request against one read-only state; one value tile per program."""
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
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile_c0 = tl.load(state_rows + key_c0[None, :], eviction_policy="evict_first")
    state_tile_c1 = tl.load(state_rows + key_c1[None, :], eviction_policy="evict_first")
    # what follows reads results of the previous kernel
    tl.extra.cuda.gdc_wait()
    k_k_rows = products + (head * capacity + first) * COLUMNS
    q_k_rows = products + ((VALUE_HEADS + head) * capacity + first) * COLUMNS
    decayed_0_rows = decayed + (head * capacity + first) * D_K
    decayed_1_rows = decayed + ((VALUE_HEADS + head) * capacity + first) * D_K
    state_tile_c0_top = ((state_tile_c0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c0_hi = state_tile_c0_top.to(tl.bfloat16)
    state_tile_c0_lo = (state_tile_c0 - state_tile_c0_top).to(tl.bfloat16)
    state_tile_c1_top = ((state_tile_c1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_c1_hi = state_tile_c1_top.to(tl.bfloat16)
    state_tile_c1_lo = (state_tile_c1 - state_tile_c1_top).to(tl.bfloat16)
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    u_rows = unknowns + first * (VALUE_HEADS * D_V) + head * D_V
    bad_w0 = tl.zeros([], tl.int64)
    bad_w1 = tl.zeros([], tl.int64)
    for block in range(0, (count + NODE_BLOCK - 1) // NODE_BLOCK):
        node = block * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
        inside = node < count
        word_index = block * NODE_BLOCK // 64
        # exp_A_log: kda.bole:11
        exp_A_log_at = rows + head * capacity + first
        exp_A_log = tl.load(exp_A_log_at + node, mask=inside, other=0.0)
        # beta: kda.bole:12
        beta_at = rows + (VALUE_HEADS + head) * capacity + first
        beta = tl.load(beta_at + node, mask=inside, other=0.0)
        # norm_k: kda.bole:10
        norm_k_at = rows + (2 * VALUE_HEADS + key_head) * capacity + first
        norm_k = tl.load(norm_k_at + node, mask=inside, other=0.0)
        # norm_q: kda.bole:9
        norm_q_at = rows + (3 * VALUE_HEADS + key_head) * capacity + first
        norm_q = tl.load(norm_q_at + node, mask=inside, other=0.0)
        # guard_v: kda.bole:8
        guard_v_at = rows + (4 * VALUE_HEADS + head) * capacity + first
        guard_v = tl.load(guard_v_at + node, mask=inside, other=0.0)
        # guard_f: kda.bole:8
        guard_f_at = rows + (5 * VALUE_HEADS + key_head) * capacity + first
        guard_f = tl.load(guard_f_at + node, mask=inside, other=0.0)
        gates_size_at = rows + (7 * VALUE_HEADS + head) * capacity + first
        gates_size = tl.load(gates_size_at + node, mask=inside, other=0.0)
        # nodes with an input that is not finite, as bits of a word
        finite = ((tl.abs(exp_A_log) < 3.0e38) & (tl.abs(beta) < 3.0e38)
            & ((norm_k > 0.0) & (norm_k < 3.0e38)) & ((norm_q > 0.0) & (norm_q < 3.0e38))
            & (tl.abs(guard_v) < 3.0e38) & (tl.abs(guard_f) < 3.0e38) & (tl.abs(gates_size) < 3.0e38))
        bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)
        bad_w0 = bad_w0 | tl.where(word_index == 0, bad, 0)
        bad_w1 = bad_w1 | tl.where(word_index == 1, bad, 0)

        # right side: R = r - P (e^T S_pre)
        # u: kda.bole:14
        k_decayed_c0 = tl.load(decayed_0_rows + (node * D_K)[:, None] + key_c0[None, :],
            mask=inside[:, None], other=0.0)
        k_decayed_c0_top = ((k_decayed_c0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        k_decayed_c0_hi = k_decayed_c0_top.to(tl.bfloat16)
        k_decayed_c0_lo = (k_decayed_c0 - k_decayed_c0_top).to(tl.bfloat16)
        erased = tl.dot(state_tile_c0_hi, tl.trans(k_decayed_c0_lo))
        erased = tl.dot(state_tile_c0_lo, tl.trans(k_decayed_c0_hi), erased)
        erased = tl.dot(state_tile_c0_hi, tl.trans(k_decayed_c0_hi), erased)
        k_decayed_c1 = tl.load(decayed_0_rows + (node * D_K)[:, None] + key_c1[None, :],
            mask=inside[:, None], other=0.0)
        k_decayed_c1_top = ((k_decayed_c1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        k_decayed_c1_hi = k_decayed_c1_top.to(tl.bfloat16)
        k_decayed_c1_lo = (k_decayed_c1 - k_decayed_c1_top).to(tl.bfloat16)
        erased = tl.dot(state_tile_c1_hi, tl.trans(k_decayed_c1_lo), erased)
        erased = tl.dot(state_tile_c1_lo, tl.trans(k_decayed_c1_hi), erased)
        erased = tl.dot(state_tile_c1_hi, tl.trans(k_decayed_c1_hi), erased)
        beta_norm_k = beta * norm_k
        erased = beta_norm_k[None, :] * erased
        v_rows = v + first * v_stride + head * D_V
        v_step = v_stride.to(tl.int32)
        v_tile = tl.load(v_rows + (node * v_step)[None, :] + value[:, None], mask=inside[None, :], other=0.0)
        v_f32 = v_tile.to(tl.float32)
        right = beta[None, :] * v_f32 - erased
        right = tl.where(tl.abs(right) < 3.0e38, right, 0.0)

        # output: P (q^T S_pre)
        # readout: kda.bole:16
        q_decayed_c0 = tl.load(decayed_1_rows + (node * D_K)[:, None] + key_c0[None, :],
            mask=inside[:, None], other=0.0)
        q_decayed_c0_top = ((q_decayed_c0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        q_decayed_c0_hi = q_decayed_c0_top.to(tl.bfloat16)
        q_decayed_c0_lo = (q_decayed_c0 - q_decayed_c0_top).to(tl.bfloat16)
        out_tile = tl.dot(state_tile_c0_hi, tl.trans(q_decayed_c0_lo))
        out_tile = tl.dot(state_tile_c0_lo, tl.trans(q_decayed_c0_hi), out_tile)
        out_tile = tl.dot(state_tile_c0_hi, tl.trans(q_decayed_c0_hi), out_tile)
        q_decayed_c1 = tl.load(decayed_1_rows + (node * D_K)[:, None] + key_c1[None, :],
            mask=inside[:, None], other=0.0)
        q_decayed_c1_top = ((q_decayed_c1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        q_decayed_c1_hi = q_decayed_c1_top.to(tl.bfloat16)
        q_decayed_c1_lo = (q_decayed_c1 - q_decayed_c1_top).to(tl.bfloat16)
        out_tile = tl.dot(state_tile_c1_hi, tl.trans(q_decayed_c1_lo), out_tile)
        out_tile = tl.dot(state_tile_c1_lo, tl.trans(q_decayed_c1_hi), out_tile)
        out_tile = tl.dot(state_tile_c1_hi, tl.trans(q_decayed_c1_hi), out_tile)
        scaled_norm_q = 0.125 * norm_q
        out_tile = scaled_norm_q[None, :] * out_tile
        word = tl.load(ancestors + first * 2 + word_index + node * 2, mask=inside, other=0)
        bad_nodes = tl.where(word_index == 1, bad_w1, bad_w0)
        lost = word & bad_nodes
        path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad_nodes)

        # what earlier blocks contribute
        for earlier in range(0, block):
            node_earlier = earlier * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
            inside_earlier = node_earlier < count
            word_index_earlier = earlier * NODE_BLOCK // 64
            # norm_k: kda.bole:10
            norm_k_earlier = tl.load(norm_k_at + node_earlier, mask=inside_earlier, other=0.0)
            word_earlier = tl.load(ancestors + first * 2 + word_index_earlier + node * 2, mask=inside,
                other=0)
            bad_nodes_earlier = tl.where(word_index_earlier == 1, bad_w1, bad_w0)
            lost = lost | word_earlier & bad_nodes_earlier
            u_earlier = tl.load(u_rows + (node_earlier * (VALUE_HEADS * D_V))[None, :] + value[:, None],
                mask=inside_earlier[None, :], other=0.0)
            u_earlier_top = ((u_earlier.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                bitcast=True)
            u_earlier_hi = u_earlier_top.to(tl.bfloat16)
            u_earlier_lo = (u_earlier - u_earlier_top).to(tl.bfloat16)
            walked_k_k_earlier = tl.where(node[None, :] >= node_earlier[:, None],
                tl.load(k_k_rows + (node * COLUMNS)[None, :] + node_earlier[:, None], mask=inside[None, :],
                other=0.0), 0.0)
            path_earlier = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0,
                word_earlier & ~bad_nodes_earlier)
            related_earlier = (((path_earlier[None, :] >> (node_earlier
                & 32)[:, None].to(tl.int64)).to(tl.int32) & (1 << (node_earlier & 31))[:, None]) != 0)
            minus_g_earlier = tl.where(related_earlier,
                -beta_norm_k[None, :] * norm_k_earlier[:, None] * walked_k_k_earlier, 0.0)
            minus_g_earlier_top = ((minus_g_earlier.to(tl.int32, bitcast=True) + 0x8000)
                & -0x10000).to(tl.float32, bitcast=True)
            minus_g_earlier_hi = minus_g_earlier_top.to(tl.bfloat16)
            minus_g_earlier_lo = (minus_g_earlier - minus_g_earlier_top).to(tl.bfloat16)
            right = tl.dot(u_earlier_hi, minus_g_earlier_lo, right)
            right = tl.dot(u_earlier_lo, minus_g_earlier_hi, right)
            right = tl.dot(u_earlier_hi, minus_g_earlier_hi, right)
            walked_q_k_earlier = tl.where(node[None, :] >= node_earlier[:, None],
                tl.load(q_k_rows + (node * COLUMNS)[None, :] + node_earlier[:, None], mask=inside[None, :],
                other=0.0), 0.0)
            readout_earlier = tl.where(related_earlier,
                scaled_norm_q[None, :] * norm_k_earlier[:, None] * walked_q_k_earlier, 0.0)
            readout_earlier_top = ((readout_earlier.to(tl.int32, bitcast=True) + 0x8000)
                & -0x10000).to(tl.float32, bitcast=True)
            readout_earlier_hi = readout_earlier_top.to(tl.bfloat16)
            readout_earlier_lo = (readout_earlier - readout_earlier_top).to(tl.bfloat16)
            out_tile = tl.dot(u_earlier_hi, readout_earlier_lo, out_tile)
            out_tile = tl.dot(u_earlier_lo, readout_earlier_hi, out_tile)
            out_tile = tl.dot(u_earlier_hi, readout_earlier_hi, out_tile)

        # the block's own system: (I+G) U = R
        walked_k_k = tl.where(node[None, :] >= node[:, None],
            tl.load(k_k_rows + (node * COLUMNS)[None, :] + node[:, None], mask=inside[None, :], other=0.0),
            0.0)
        related = (((path[None, :] >> (node & 32)[:, None].to(tl.int64)).to(tl.int32)
            & (1 << (node & 31))[:, None]) != 0)
        minus_g = tl.where(related & (node[None, :] > node[:, None]),
            -beta_norm_k[None, :] * norm_k[:, None] * walked_k_k, 0.0)
        # (I+G)^-1, rough: I + Z, Z <- -G - Z G in bfloat16
        minus_g_top = ((minus_g.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        minus_g_hi = minus_g_top.to(tl.bfloat16)
        minus_g_rest = minus_g - minus_g_top
        minus_g_mid = (minus_g_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        minus_g_lo = minus_g_mid.to(tl.bfloat16)
        minus_g_last = (minus_g_rest - minus_g_mid).to(tl.bfloat16)
        inverse_rough = minus_g_hi
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_whole = tl.dot(inverse_rough, minus_g_hi, minus_g)
        inverse_whole_top = ((inverse_whole.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        inverse_whole_hi = inverse_whole_top.to(tl.bfloat16)
        # what is missing: E = -G - Z - G Z, and E + E^2
        inverse_residual = minus_g - inverse_whole_top
        inverse_residual = tl.dot(minus_g_last, inverse_whole_hi, inverse_residual)
        inverse_residual = tl.dot(minus_g_lo, inverse_whole_hi, inverse_residual)
        inverse_residual = tl.dot(minus_g_hi, inverse_whole_hi, inverse_residual)
        inverse_residual_16 = inverse_residual.to(tl.bfloat16)
        inverse_correction = tl.dot(inverse_residual_16, inverse_residual_16, inverse_residual)
        identity = tl.where(node[None, :] == node[:, None], 1.0, 0.0)
        inverse = identity + inverse_whole_top + inverse_correction
        inverse_correction_top = ((inverse_correction.to(tl.int32, bitcast=True) + 0x8000)
            & -0x10000).to(tl.float32, bitcast=True)
        inverse_correction_hi = inverse_correction_top.to(tl.bfloat16)
        inverse_correction_lo = (inverse_correction - inverse_correction_top).to(tl.bfloat16)
        inverse = tl.dot(inverse_whole_hi, inverse_correction_lo, inverse)
        inverse = tl.dot(inverse_whole_hi, inverse_correction_hi, inverse)
        inverse_top = ((inverse.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        inverse_hi = inverse_top.to(tl.bfloat16)
        inverse_lo = (inverse - inverse_top).to(tl.bfloat16)
        right_top = ((right.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        right_hi = right_top.to(tl.bfloat16)
        right_lo = (right - right_top).to(tl.bfloat16)
        u = tl.dot(right_hi, inverse_lo)
        u = tl.dot(right_lo, inverse_hi, u)
        u = tl.dot(right_hi, inverse_hi, u)
        tl.store(u_rows + (node * (VALUE_HEADS * D_V))[None, :] + value[:, None], u, mask=inside[None, :])
        u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        u_hi = u_top.to(tl.bfloat16)
        u_lo = (u - u_top).to(tl.bfloat16)

        # output: + C U
        walked_q_k = tl.where(node[None, :] >= node[:, None],
            tl.load(q_k_rows + (node * COLUMNS)[None, :] + node[:, None], mask=inside[None, :], other=0.0),
            0.0)
        readout = tl.where(related, scaled_norm_q[None, :] * norm_k[:, None] * walked_q_k, 0.0)
        readout_top = ((readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        readout_hi = readout_top.to(tl.bfloat16)
        readout_lo = (readout - readout_top).to(tl.bfloat16)
        out_tile = tl.dot(u_hi, readout_lo, out_tile)
        out_tile = tl.dot(u_lo, readout_hi, out_tile)
        out_tile = tl.dot(u_hi, readout_hi, out_tile)
        poisoned = lost != 0
        out_tile = tl.where(poisoned[None, :], float("nan"), out_tile)
        out_tile = tl.where(slot >= 0, out_tile, 0.0)
        tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
            mask=inside[None, :])
        # later blocks read the unknowns of this one
        tl.debug_barrier()


