@triton.jit
def factors(cu_nodes, ancestors, passing, mixed, rows, capacity, folded):
    """Once per head and node block: its system, solved and folded into what is read of it."""
    program = tl.program_id(0)
    systems = tl.num_programs(0) // NODE_BLOCKS
    block = program // systems
    head = program % systems % VALUE_HEADS
    request = program % systems // VALUE_HEADS
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key = tl.arange(0, B_K)
    node = block * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
    inside = node < count
    word_index = block * NODE_BLOCK // 64
    tl.extra.cuda.gdc_wait()
    # after the wait: a value program that runs knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    word = tl.load(ancestors + first * 4 + word_index + node * 4, mask=inside, other=0)
    if block * NODE_BLOCK < count:
        q_rows = passing + first * PASSING_CHANNELS + key_head * D_K
        q_tile = tl.load(q_rows + (node * PASSING_CHANNELS)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
        k_rows = mixed + first * KEPT_CHANNELS + key_head * D_K
        k_tile = tl.load(k_rows + (node * KEPT_CHANNELS)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
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
        # nodes with an input that is not finite, as bits of a word
        finite = ((tl.abs(beta) < 3.0e38) & ((norm_k > 0.0) & (norm_k < 3.0e38))
            & ((norm_q > 0.0) & (norm_q < 3.0e38)) & (tl.abs(guard_v) < 3.0e38) & (tl.abs(c) < 3.0e38))
        bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

        # for the value kernel: what multiplies rows, NaN below a non-finite input
        scaled_norm_q = 0.10206207261596577 * norm_q
        poisoned = (word & bad) != 0
        out_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
        tl.store(out_row_at + node, tl.where(poisoned, float("nan"), tl.exp2(c + c_rest) * scaled_norm_q),
            mask=inside)
        erase_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
        tl.store(erase_row_at + node, tl.exp2(c + c_rest) * norm_k, mask=inside)
        place = folded + (request * VALUE_HEADS + head).to(tl.int64) * 48 * (NODE_BLOCK * NODE_BLOCK)
        cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
        # a bad node has a zero column, which NaN must not spoil
        column_scale = tl.where(finite, beta, 0.0)

        # G (with a minus sign)
        beta_norm_k = beta * norm_k
        beta_norm_k_to = beta_norm_k * tl.exp2(c_rest)
        gram_k_k = tl.dot(k_tile, tl.trans(k_tile))
        norm_k_from = norm_k * tl.exp2(-c_rest)
        decay = tl.exp2(c[:, None] - c[None, :]) * norm_k_from[None, :]
        path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
        related = (((path[:, None] >> (node & 32)[None, :].to(tl.int64)).to(tl.int32)
            & (1 << (node & 31))[None, :]) != 0)
        minus_g = tl.where(related & (node[:, None] > node[None, :]),
            -beta_norm_k_to[:, None] * decay * gram_k_k, 0.0)
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
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_rough = tl.dot(inverse_rough, minus_g_hi, minus_g).to(tl.bfloat16)
        inverse_whole = tl.dot(inverse_rough, minus_g_hi, minus_g)
        inverse_whole_top = ((inverse_whole.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        inverse_whole_hi = inverse_whole_top.to(tl.bfloat16)
        # what is missing: E = -G - Z - G Z, and E + E^2 + E^3
        inverse_residual = minus_g - inverse_whole_top
        inverse_residual = tl.dot(minus_g_last, inverse_whole_hi, inverse_residual)
        inverse_residual = tl.dot(minus_g_lo, inverse_whole_hi, inverse_residual)
        inverse_residual = tl.dot(minus_g_hi, inverse_whole_hi, inverse_residual)
        inverse_residual_top = ((inverse_residual.to(tl.int32, bitcast=True) + 0x8000)
            & -0x10000).to(tl.float32, bitcast=True)
        inverse_residual_hi = inverse_residual_top.to(tl.bfloat16)
        inverse_residual_lo = (inverse_residual - inverse_residual_top).to(tl.bfloat16)
        inverse_square = tl.dot(inverse_residual_hi, inverse_residual_lo)
        inverse_square = tl.dot(inverse_residual_lo, inverse_residual_hi, inverse_square)
        inverse_square = tl.dot(inverse_residual_hi, inverse_residual_hi, inverse_square)
        inverse_square_16 = inverse_square.to(tl.bfloat16)
        inverse_correction = tl.dot(inverse_residual_hi, inverse_square_16, inverse_residual + inverse_square)
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
        inverse_rest = inverse - inverse_top
        inverse_mid = (inverse_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        inverse_lo = inverse_mid.to(tl.bfloat16)
        inverse_last = (inverse_rest - inverse_mid).to(tl.bfloat16)

        # what outputs of the block read of it
        scaled_norm_q_to = scaled_norm_q * tl.exp2(c_rest)
        gram_q_k = tl.dot(q_tile, tl.trans(k_tile))
        readout = tl.where(related, scaled_norm_q_to[:, None] * decay * gram_q_k, 0.0)
        readout_top = ((readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        readout_hi = readout_top.to(tl.bfloat16)
        readout_rest = readout - readout_top
        readout_mid = (readout_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        readout_lo = readout_mid.to(tl.bfloat16)
        readout_last = (readout_rest - readout_mid).to(tl.bfloat16)
        fold = tl.dot(readout_hi, inverse_last)
        fold = tl.dot(readout_lo, inverse_lo, fold)
        fold = tl.dot(readout_last, inverse_hi, fold)
        fold = tl.dot(readout_hi, inverse_lo, fold)
        fold = tl.dot(readout_lo, inverse_hi, fold)
        fold = tl.dot(readout_hi, inverse_hi, fold)
        fold = fold * column_scale[None, :]
        slot = block * (block + 1) // 2 + block
        fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        fold_hi = fold_top.to(tl.bfloat16)
        fold_rest = fold - fold_top
        fold_mid = (fold_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        fold_lo = fold_mid.to(tl.bfloat16)
        fold_last = (fold_rest - fold_mid).to(tl.bfloat16)
        tl.store(place + slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell, fold_hi)
        tl.store(place + (slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell, fold_lo)
        tl.store(place + (slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell, fold_last)

        # what later blocks read of this one
        for later in range(block + 1, (count + NODE_BLOCK - 1) // NODE_BLOCK):
            node_later = later * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
            inside_later = node_later < count
            word_index_later = later * NODE_BLOCK // 64
            word_later = tl.load(ancestors + first * 4 + word_index + node_later * 4, mask=inside_later,
                other=0)
            reached = tl.max(tl.where(word_later != 0, 1, 0), axis=0)
            reached_at = rows + (8 * VALUE_HEADS + head) * capacity + first
            tl.store(reached_at + block * NODE_BLOCK + later, reached.to(tl.float32))
            if reached != 0:
                # beta: gdn.bole:13
                beta_later = tl.load(beta_at + node_later, mask=inside_later, other=0.0)
                # norm_k: gdn.bole:11
                norm_k_later = tl.load(norm_k_at + node_later, mask=inside_later, other=0.0)
                # norm_q: gdn.bole:10
                norm_q_later = tl.load(norm_q_at + node_later, mask=inside_later, other=0.0)
                guard_v_later = tl.load(guard_v_at + node_later, mask=inside_later, other=0.0)
                # log-decay g, and c its sum over the path: gdn.bole:12
                c_later = tl.load(c_at + node_later, mask=inside_later, other=0.0)
                c_rest_later = tl.load(c_rest_at + node_later, mask=inside_later, other=0.0)
                # nodes with an input that is not finite, as bits of a word
                finite_later = ((tl.abs(beta_later) < 3.0e38)
                    & ((norm_k_later > 0.0) & (norm_k_later < 3.0e38))
                    & ((norm_q_later > 0.0) & (norm_q_later < 3.0e38)) & (tl.abs(guard_v_later) < 3.0e38)
                    & (tl.abs(c_later) < 3.0e38))
                bad_later = tl.sum(tl.where(finite_later, 0,
                    1).to(tl.int64) << (node_later & 63).to(tl.int64), axis=0)
                lost = (word_later & bad) != 0

                # what outputs read
                scaled_norm_q_later = 0.10206207261596577 * norm_q_later
                scaled_norm_q_later_to = scaled_norm_q_later * tl.exp2(c_rest_later)
                q_tile_later = tl.load(q_rows + (node_later * PASSING_CHANNELS)[:, None] + key[None, :],
                    mask=inside_later[:, None] & (key < D_K)[None, :], other=0.0)
                gram_q_k_later = tl.dot(q_tile_later, tl.trans(k_tile))
                decay_later = tl.exp2(c_later[:, None] - c[None, :]) * norm_k_from[None, :]
                path_later = tl.where((bad_later & (1 << (node_later & 63).to(tl.int64))) != 0, 0,
                    word_later & ~bad)
                related_later = (((path_later[:, None] >> (node & 32)[None, :].to(tl.int64)).to(tl.int32)
                    & (1 << (node & 31))[None, :]) != 0)
                readout_later = tl.where(related_later,
                    scaled_norm_q_later_to[:, None] * decay_later * gram_q_k_later, 0.0)
                readout_later_top = ((readout_later.to(tl.int32, bitcast=True) + 0x8000)
                    & -0x10000).to(tl.float32, bitcast=True)
                readout_later_hi = readout_later_top.to(tl.bfloat16)
                readout_later_rest = readout_later - readout_later_top
                readout_later_mid = (readout_later_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                readout_later_lo = readout_later_mid.to(tl.bfloat16)
                readout_later_last = (readout_later_rest - readout_later_mid).to(tl.bfloat16)
                fold_later = tl.dot(readout_later_hi, inverse_last)
                fold_later = tl.dot(readout_later_lo, inverse_lo, fold_later)
                fold_later = tl.dot(readout_later_last, inverse_hi, fold_later)
                fold_later = tl.dot(readout_later_hi, inverse_lo, fold_later)
                fold_later = tl.dot(readout_later_lo, inverse_hi, fold_later)
                fold_later = tl.dot(readout_later_hi, inverse_hi, fold_later)
                fold_later = fold_later * column_scale[None, :]
                # outputs below a non-finite input become NaN
                fold_later = tl.where(lost[:, None], float("nan"), fold_later)
                slot = later * (later + 1) // 2 + block
                fold_later_top = ((fold_later.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                    bitcast=True)
                fold_later_hi = fold_later_top.to(tl.bfloat16)
                fold_later_rest = fold_later - fold_later_top
                fold_later_mid = (fold_later_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                fold_later_lo = fold_later_mid.to(tl.bfloat16)
                fold_later_last = (fold_later_rest - fold_later_mid).to(tl.bfloat16)
                tl.store(place + slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell, fold_later_hi)
                tl.store(place + (slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell, fold_later_lo)
                tl.store(place + (slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell, fold_later_last)

                # what unknowns see, with a minus sign
                norm_k_later_to = norm_k_later * tl.exp2(c_rest_later)
                k_tile_later = tl.load(k_rows + (node_later * KEPT_CHANNELS)[:, None] + key[None, :],
                    mask=inside_later[:, None] & (key < D_K)[None, :], other=0.0)
                gram_k_k_later = tl.dot(k_tile_later, tl.trans(k_tile))
                minus_g_later = tl.where(related_later,
                    -norm_k_later_to[:, None] * decay_later * gram_k_k_later, 0.0)
                minus_g_later_top = ((minus_g_later.to(tl.int32, bitcast=True) + 0x8000)
                    & -0x10000).to(tl.float32, bitcast=True)
                minus_g_later_hi = minus_g_later_top.to(tl.bfloat16)
                minus_g_later_rest = minus_g_later - minus_g_later_top
                minus_g_later_mid = (minus_g_later_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                minus_g_later_lo = minus_g_later_mid.to(tl.bfloat16)
                minus_g_later_last = (minus_g_later_rest - minus_g_later_mid).to(tl.bfloat16)
                seen_later = tl.dot(minus_g_later_hi, inverse_last)
                seen_later = tl.dot(minus_g_later_lo, inverse_lo, seen_later)
                seen_later = tl.dot(minus_g_later_last, inverse_hi, seen_later)
                seen_later = tl.dot(minus_g_later_hi, inverse_lo, seen_later)
                seen_later = tl.dot(minus_g_later_lo, inverse_hi, seen_later)
                seen_later = tl.dot(minus_g_later_hi, inverse_hi, seen_later)
                seen_later = seen_later * column_scale[None, :]
                slot = 10 + later * (later - 1) // 2 + block
                seen_later_top = ((seen_later.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                    bitcast=True)
                seen_later_hi = seen_later_top.to(tl.bfloat16)
                seen_later_rest = seen_later - seen_later_top
                seen_later_mid = (seen_later_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                seen_later_lo = seen_later_mid.to(tl.bfloat16)
                seen_later_last = (seen_later_rest - seen_later_mid).to(tl.bfloat16)
                tl.store(place + slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell, seen_later_hi)
                tl.store(place + (slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell, seen_later_lo)
                tl.store(place + (slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell, seen_later_last)


