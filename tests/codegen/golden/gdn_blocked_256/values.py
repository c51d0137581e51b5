@triton.jit
def values(
    cu_nodes, slots, state, state_stride, out, out_stride, unknowns, folded, rows, capacity, mixed, passing,
):
    """One value tile per program: the state read once, times the folded factors of all blocks."""
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
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + (head * D_V + value)[:, None] * D_K
    state_tile = tl.load(state_rows + key[None, :], mask=(value < D_V)[:, None] & (key < D_K)[None, :],
        other=0.0, eviction_policy="evict_first")
    state_tile_top = ((state_tile.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    state_tile_hi = state_tile_top.to(tl.bfloat16)
    state_tile_lo = (state_tile - state_tile_top).to(tl.bfloat16)

    # what follows reads results of the factors kernel
    tl.extra.cuda.gdc_wait()
    out_rows = out + first * out_stride + head * D_V
    out_step = out_stride.to(tl.int32)
    u_rows = unknowns + first * (VALUE_HEADS * D_V) + head * D_V
    place = folded + (request * VALUE_HEADS + head).to(tl.int64) * 48 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    reached_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    for block in range(0, (count + NODE_BLOCK - 1) // NODE_BLOCK):
        node = block * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
        inside = node < count
        word_index = block * NODE_BLOCK // 64

        # products with the committed state, before any row scalar is needed
        k_rows = mixed + first * KEPT_CHANNELS + key_head * D_K
        k_tile = tl.load(k_rows + (node * KEPT_CHANNELS)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
        state_dot_k = tl.dot(state_tile_lo, tl.trans(k_tile))
        state_dot_k = tl.dot(state_tile_hi, tl.trans(k_tile), state_dot_k)
        q_rows = passing + first * PASSING_CHANNELS + key_head * D_K
        q_tile = tl.load(q_rows + (node * PASSING_CHANNELS)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
        state_dot_q = tl.dot(state_tile_lo, tl.trans(q_tile))
        state_dot_q = tl.dot(state_tile_hi, tl.trans(q_tile), state_dot_q)
        v_rows = mixed + first * KEPT_CHANNELS + 384 + head * D_V
        v_tile = tl.load(v_rows + (node * KEPT_CHANNELS)[None, :] + value[:, None],
            mask=inside[None, :] & (value < D_V)[:, None], other=0.0)
        v_f32 = v_tile.to(tl.float32)
        out_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
        out_row = tl.load(out_row_at + node, mask=inside, other=0.0)
        erase_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
        erase_row = tl.load(erase_row_at + node, mask=inside, other=0.0)

        # right side: R = r - P (e^T S_pre)
        # u: gdn.bole:15
        right = v_f32 - erase_row[None, :] * state_dot_k

        # output: P (q^T S_pre)
        # readout: gdn.bole:17
        out_tile = out_row[None, :] * state_dot_q

        # what earlier blocks contribute
        for earlier in range(0, block):
            reached = tl.load(reached_at + earlier * NODE_BLOCK + block)
            if reached != 0.0:
                node_earlier = earlier * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
                inside_earlier = node_earlier < count
                word_index_earlier = earlier * NODE_BLOCK // 64
                right_earlier = tl.load(u_rows + (node_earlier * (VALUE_HEADS * D_V))[None, :]
                    + value[:, None], mask=inside_earlier[None, :] & (value < D_V)[:, None], other=0.0)
                right_earlier_top = ((right_earlier.to(tl.int32, bitcast=True) + 0x8000)
                    & -0x10000).to(tl.float32, bitcast=True)
                right_earlier_hi = right_earlier_top.to(tl.bfloat16)
                right_earlier_rest = right_earlier - right_earlier_top
                right_earlier_mid = (right_earlier_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                right_earlier_lo = right_earlier_mid.to(tl.bfloat16)
                right_earlier_last = (right_earlier_rest - right_earlier_mid).to(tl.bfloat16)
                seen_slot = 10 + block * (block - 1) // 2 + earlier
                folded_0_0 = tl.load(place + seen_slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
                folded_0_1 = tl.load(place + (seen_slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell)
                folded_0_2 = tl.load(place + (seen_slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell)
                right = tl.dot(right_earlier_hi, tl.trans(folded_0_2), right)
                right = tl.dot(right_earlier_lo, tl.trans(folded_0_1), right)
                right = tl.dot(right_earlier_last, tl.trans(folded_0_0), right)
                right = tl.dot(right_earlier_hi, tl.trans(folded_0_1), right)
                right = tl.dot(right_earlier_lo, tl.trans(folded_0_0), right)
                right = tl.dot(right_earlier_hi, tl.trans(folded_0_0), right)
                read_slot = block * (block + 1) // 2 + earlier
                folded_0_0 = tl.load(place + read_slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
                folded_0_1 = tl.load(place + (read_slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell)
                folded_0_2 = tl.load(place + (read_slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell)
                out_tile = tl.dot(right_earlier_hi, tl.trans(folded_0_2), out_tile)
                out_tile = tl.dot(right_earlier_lo, tl.trans(folded_0_1), out_tile)
                out_tile = tl.dot(right_earlier_last, tl.trans(folded_0_0), out_tile)
                out_tile = tl.dot(right_earlier_hi, tl.trans(folded_0_1), out_tile)
                out_tile = tl.dot(right_earlier_lo, tl.trans(folded_0_0), out_tile)
                out_tile = tl.dot(right_earlier_hi, tl.trans(folded_0_0), out_tile)

        # output: + F R
        right = tl.where(tl.abs(right) < 3.0e38, right, 0.0)
        if (block + 1) * NODE_BLOCK < count:
            tl.store(u_rows + (node * (VALUE_HEADS * D_V))[None, :] + value[:, None], right,
                mask=inside[None, :] & (value < D_V)[:, None])
        right_top = ((right.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        right_hi = right_top.to(tl.bfloat16)
        right_rest = right - right_top
        right_mid = (right_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        right_lo = right_mid.to(tl.bfloat16)
        right_last = (right_rest - right_mid).to(tl.bfloat16)
        read_slot = block * (block + 1) // 2 + block
        folded_0_0 = tl.load(place + read_slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell)
        folded_0_1 = tl.load(place + (read_slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell)
        folded_0_2 = tl.load(place + (read_slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell)
        out_tile = tl.dot(right_hi, tl.trans(folded_0_2), out_tile)
        out_tile = tl.dot(right_lo, tl.trans(folded_0_1), out_tile)
        out_tile = tl.dot(right_last, tl.trans(folded_0_0), out_tile)
        out_tile = tl.dot(right_hi, tl.trans(folded_0_1), out_tile)
        out_tile = tl.dot(right_lo, tl.trans(folded_0_0), out_tile)
        out_tile = tl.dot(right_hi, tl.trans(folded_0_0), out_tile)
        out_tile = tl.where(slot >= 0, out_tile, 0.0)
        tl.store(out_rows + (node * out_step)[None, :] + value[:, None], out_tile.to(out.dtype.element_ty),
            mask=inside[None, :] & (value < D_V)[:, None])
        # later blocks read the right sides of this one
        tl.debug_barrier()


