@triton.jit
def values(
    cu_nodes, slots, state, state_stride, a, a_stride, q, q_stride, v, v_stride, out, out_stride, folded,
    rows, capacity,
):
    """One value tile per program: the state read once, times the folded factors of all blocks."""
    program = tl.program_id(0)
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // (VALUE_TILES * VALUE_HEADS)
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    value = value_tile * B_V + tl.arange(0, B_V)
    key = tl.arange(0, B_K)
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[None, :] * D_K
    state_tile = tl.load(state_rows + key[:, None], eviction_policy="evict_first")
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)

    # node block 0
    node_0 = tl.arange(0, NODE_BLOCK)
    inside_0 = node_0 < count

    # products with the committed state, before any row scalar is needed
    a_rows = a + first * a_stride + key_head * D_K
    a_step = a_stride.to(tl.int32)
    a_tile_0 = tl.load(a_rows + (node_0 * a_step)[:, None] + key[None, :], mask=inside_0[:, None], other=0.0)
    state_dot_a = tl.dot(a_tile_0, state_tile_lo)
    state_dot_a = tl.dot(a_tile_0, state_tile_hi, state_dot_a)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile_0 = tl.load(q_rows + (node_0 * q_step)[:, None] + key[None, :], mask=inside_0[:, None], other=0.0)
    state_dot_q = tl.dot(q_tile_0, state_tile_lo)
    state_dot_q = tl.dot(q_tile_0, state_tile_hi, state_dot_q)
    v_rows = v + first * v_stride + head * D_V
    v_step = v_stride.to(tl.int32)
    v_tile_0 = tl.load(v_rows + (node_0 * v_step)[:, None] + value[None, :], mask=inside_0[:, None],
        other=0.0)
    v_f32_0 = v_tile_0.to(tl.float32)

    # what follows reads results of the factors kernel
    tl.extra.cuda.gdc_wait()
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    place = folded + (request * VALUE_HEADS + head).to(tl.int64) * 24 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    reached_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    out_row_at = rows + (5 * VALUE_HEADS + head) * capacity + first
    out_row_0 = tl.load(out_row_at + node_0, mask=inside_0, other=0.0)
    erase_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    erase_row_0 = tl.load(erase_row_at + node_0, mask=inside_0, other=0.0)

    # right side: R = r - P (e^T S_pre)
    # u: iplr.bole:8
    right_0 = 0.0 - erase_row_0[:, None] * state_dot_a

    # output: P (q^T S_pre)
    # readout: iplr.bole:9
    out_tile_0 = out_row_0[:, None] * state_dot_q

    # output: + F R
    right_0 = tl.where(tl.abs(right_0) < 3.0e38, right_0, 0.0)
    right_0_top = ((right_0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    right_0_hi = right_0_top.to(tl.bfloat16)
    right_0_rest = right_0 - right_0_top
    right_0_mid = (right_0_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    right_0_lo = right_0_mid.to(tl.bfloat16)
    right_0_last = (right_0_rest - right_0_mid).to(tl.bfloat16)
    v_finite_0 = tl.where(tl.abs(v_f32_0) < 3.0e38, v_f32_0, 0.0)
    v_finite_0_16 = v_finite_0.to(tl.bfloat16)
    read_slot = (0 * (0 + 1) // 2 + 0) * 2
    folded_0_0 = tl.load(place + read_slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
    folded_0_1 = tl.load(place + (read_slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell)
    folded_0_2 = tl.load(place + (read_slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_tile_0 = tl.dot(folded_0_0, right_0_last, out_tile_0)
    out_tile_0 = tl.dot(folded_0_1, right_0_lo, out_tile_0)
    out_tile_0 = tl.dot(folded_0_2, right_0_hi, out_tile_0)
    out_tile_0 = tl.dot(folded_0_0, right_0_lo, out_tile_0)
    out_tile_0 = tl.dot(folded_0_1, right_0_hi, out_tile_0)
    out_tile_0 = tl.dot(folded_0_0, right_0_hi, out_tile_0)
    folded_1_0 = tl.load(place + (read_slot * 3 + 3) * (NODE_BLOCK * NODE_BLOCK) + cell)
    folded_1_1 = tl.load(place + (read_slot * 3 + 4) * (NODE_BLOCK * NODE_BLOCK) + cell)
    folded_1_2 = tl.load(place + (read_slot * 3 + 5) * (NODE_BLOCK * NODE_BLOCK) + cell)
    out_tile_0 = tl.dot(folded_1_2, v_finite_0_16, out_tile_0)
    out_tile_0 = tl.dot(folded_1_1, v_finite_0_16, out_tile_0)
    out_tile_0 = tl.dot(folded_1_0, v_finite_0_16, out_tile_0)
    out_tile_0 = tl.where(slot >= 0, out_tile_0, 0.0)
    tl.store(out_rows + (node_0 * out_step)[:, None] + value[None, :], out_tile_0.to(out.dtype.element_ty),
        mask=inside_0[:, None])
    if 1 * NODE_BLOCK < count:
        node_1 = 64 + tl.arange(0, NODE_BLOCK)
        inside_1 = node_1 < count

        # products with the committed state, before any row scalar is needed
        a_tile_1 = tl.load(a_rows + (node_1 * a_step)[:, None] + key[None, :], mask=inside_1[:, None],
            other=0.0)
        state_dot_a_2 = tl.dot(a_tile_1, state_tile_lo)
        state_dot_a_2 = tl.dot(a_tile_1, state_tile_hi, state_dot_a_2)
        q_tile_1 = tl.load(q_rows + (node_1 * q_step)[:, None] + key[None, :], mask=inside_1[:, None],
            other=0.0)
        state_dot_q_2 = tl.dot(q_tile_1, state_tile_lo)
        state_dot_q_2 = tl.dot(q_tile_1, state_tile_hi, state_dot_q_2)
        v_tile_1 = tl.load(v_rows + (node_1 * v_step)[:, None] + value[None, :], mask=inside_1[:, None],
            other=0.0)
        v_f32_1 = v_tile_1.to(tl.float32)
        out_row_1 = tl.load(out_row_at + node_1, mask=inside_1, other=0.0)
        erase_row_1 = tl.load(erase_row_at + node_1, mask=inside_1, other=0.0)

        # right side: R = r - P (e^T S_pre)
        # u: iplr.bole:8
        right_1 = 0.0 - erase_row_1[:, None] * state_dot_a_2

        # output: P (q^T S_pre)
        # readout: iplr.bole:9
        out_tile_1 = out_row_1[:, None] * state_dot_q_2

        # what earlier blocks contribute
        reached = tl.load(reached_at + 0 * NODE_BLOCK + 1)
        if reached != 0.0:
            v_finite_0_16 = v_finite_0.to(tl.bfloat16)
            seen_slot = (3 + 1 * (1 - 1) // 2 + 0) * 2
            folded_0_0 = tl.load(place + seen_slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_0_1 = tl.load(place + (seen_slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_0_2 = tl.load(place + (seen_slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell)
            right_1 = tl.dot(folded_0_0, right_0_last, right_1)
            right_1 = tl.dot(folded_0_1, right_0_lo, right_1)
            right_1 = tl.dot(folded_0_2, right_0_hi, right_1)
            right_1 = tl.dot(folded_0_0, right_0_lo, right_1)
            right_1 = tl.dot(folded_0_1, right_0_hi, right_1)
            right_1 = tl.dot(folded_0_0, right_0_hi, right_1)
            folded_1_0 = tl.load(place + (seen_slot * 3 + 3) * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_1_1 = tl.load(place + (seen_slot * 3 + 4) * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_1_2 = tl.load(place + (seen_slot * 3 + 5) * (NODE_BLOCK * NODE_BLOCK) + cell)
            right_1 = tl.dot(folded_1_2, v_finite_0_16, right_1)
            right_1 = tl.dot(folded_1_1, v_finite_0_16, right_1)
            right_1 = tl.dot(folded_1_0, v_finite_0_16, right_1)
            read_slot = (1 * (1 + 1) // 2 + 0) * 2
            folded_0_0 = tl.load(place + read_slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_0_1 = tl.load(place + (read_slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_0_2 = tl.load(place + (read_slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell)
            out_tile_1 = tl.dot(folded_0_0, right_0_last, out_tile_1)
            out_tile_1 = tl.dot(folded_0_1, right_0_lo, out_tile_1)
            out_tile_1 = tl.dot(folded_0_2, right_0_hi, out_tile_1)
            out_tile_1 = tl.dot(folded_0_0, right_0_lo, out_tile_1)
            out_tile_1 = tl.dot(folded_0_1, right_0_hi, out_tile_1)
            out_tile_1 = tl.dot(folded_0_0, right_0_hi, out_tile_1)
            folded_1_0 = tl.load(place + (read_slot * 3 + 3) * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_1_1 = tl.load(place + (read_slot * 3 + 4) * (NODE_BLOCK * NODE_BLOCK) + cell)
            folded_1_2 = tl.load(place + (read_slot * 3 + 5) * (NODE_BLOCK * NODE_BLOCK) + cell)
            out_tile_1 = tl.dot(folded_1_2, v_finite_0_16, out_tile_1)
            out_tile_1 = tl.dot(folded_1_1, v_finite_0_16, out_tile_1)
            out_tile_1 = tl.dot(folded_1_0, v_finite_0_16, out_tile_1)

        # output: + F R
        right_1 = tl.where(tl.abs(right_1) < 3.0e38, right_1, 0.0)
        right_1_top = ((right_1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        right_1_hi = right_1_top.to(tl.bfloat16)
        right_1_rest = right_1 - right_1_top
        right_1_mid = (right_1_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        right_1_lo = right_1_mid.to(tl.bfloat16)
        right_1_last = (right_1_rest - right_1_mid).to(tl.bfloat16)
        v_finite_1 = tl.where(tl.abs(v_f32_1) < 3.0e38, v_f32_1, 0.0)
        v_finite_1_16 = v_finite_1.to(tl.bfloat16)
        read_slot = (1 * (1 + 1) // 2 + 1) * 2
        folded_0_0 = tl.load(place + read_slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
        folded_0_1 = tl.load(place + (read_slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell)
        folded_0_2 = tl.load(place + (read_slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell)
        out_tile_1 = tl.dot(folded_0_0, right_1_last, out_tile_1)
        out_tile_1 = tl.dot(folded_0_1, right_1_lo, out_tile_1)
        out_tile_1 = tl.dot(folded_0_2, right_1_hi, out_tile_1)
        out_tile_1 = tl.dot(folded_0_0, right_1_lo, out_tile_1)
        out_tile_1 = tl.dot(folded_0_1, right_1_hi, out_tile_1)
        out_tile_1 = tl.dot(folded_0_0, right_1_hi, out_tile_1)
        folded_1_0 = tl.load(place + (read_slot * 3 + 3) * (NODE_BLOCK * NODE_BLOCK) + cell)
        folded_1_1 = tl.load(place + (read_slot * 3 + 4) * (NODE_BLOCK * NODE_BLOCK) + cell)
        folded_1_2 = tl.load(place + (read_slot * 3 + 5) * (NODE_BLOCK * NODE_BLOCK) + cell)
        out_tile_1 = tl.dot(folded_1_2, v_finite_1_16, out_tile_1)
        out_tile_1 = tl.dot(folded_1_1, v_finite_1_16, out_tile_1)
        out_tile_1 = tl.dot(folded_1_0, v_finite_1_16, out_tile_1)
        out_tile_1 = tl.where(slot >= 0, out_tile_1, 0.0)
        tl.store(out_rows + (node_1 * out_step)[:, None] + value[None, :],
            out_tile_1.to(out.dtype.element_ty), mask=inside_1[:, None])


