@triton.jit
def factors(cu_nodes, ancestors, q, q_stride, k, k_stride, a, a_stride, b, b_stride, rows, capacity, folded):
    """Once per head and node block: its system, solved and folded into what is read of it."""
    program = tl.program_id(0)
    systems = tl.num_programs(0) // NODE_BLOCKS
    block = program // systems
    head = program % systems % VALUE_HEADS
    request = program % systems // VALUE_HEADS
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key = tl.arange(0, B_K)
    node = block * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
    inside = node < count
    word_index = block * NODE_BLOCK // 64

    # not from the prepare kernel, which writes row scalars only
    word = tl.load(ancestors + first * 2 + word_index + node * 2, mask=inside, other=0)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    a_rows = a + first * a_stride + key_head * D_K
    a_step = a_stride.to(tl.int32)
    a_tile = tl.load(a_rows + (node * a_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    b_rows = b + first * b_stride + key_head * D_K
    b_step = b_stride.to(tl.int32)
    b_tile = tl.load(b_rows + (node * b_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    tl.extra.cuda.gdc_wait()
    # after the wait: a value program that runs knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    if block * NODE_BLOCK < count:
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
        # nodes with an input that is not finite, as bits of a word
        finite = ((tl.abs(guard_q) < 3.0e38) & (tl.abs(guard_k) < 3.0e38) & (tl.abs(guard_v) < 3.0e38)
            & (tl.abs(guard_a) < 3.0e38) & (tl.abs(guard_b) < 3.0e38))
        bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

        # for the value kernel: what multiplies rows, NaN below a non-finite input
        scale = tl.full([NODE_BLOCK], 0.125, tl.float32)
        poisoned = (word & bad) != 0
        scale_2 = tl.full([NODE_BLOCK], -1.0, tl.float32)
        out_row_at = rows + (5 * VALUE_HEADS + head) * capacity + first
        tl.store(out_row_at + node, tl.where(poisoned, float("nan"), scale), mask=inside)
        erase_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
        tl.store(erase_row_at + node, scale_2, mask=inside)
        place = folded + (request * VALUE_HEADS + head).to(tl.int64) * 24 * (NODE_BLOCK * NODE_BLOCK)
        cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]

        # G (with a minus sign)
        gram_a_k = tl.dot(a_tile, tl.trans(k_tile))
        path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
        related = (((path[:, None] >> (node & 32)[None, :].to(tl.int64)).to(tl.int32)
            & (1 << (node & 31))[None, :]) != 0)
        minus_seen = tl.where(related & (node[:, None] > node[None, :]), -scale_2[:, None] * gram_a_k, 0.0)
        minus_seen_top = ((minus_seen.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        minus_seen_hi = minus_seen_top.to(tl.bfloat16)
        minus_seen_rest = minus_seen - minus_seen_top
        minus_seen_mid = (minus_seen_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        minus_seen_lo = minus_seen_mid.to(tl.bfloat16)
        minus_seen_last = (minus_seen_rest - minus_seen_mid).to(tl.bfloat16)
        gram_a_b = tl.dot(a_tile, tl.trans(b_tile))
        minus_g = tl.where(related & (node[:, None] > node[None, :]), -scale_2[:, None] * gram_a_b, 0.0)
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
        inverse_rest = inverse - inverse_top
        inverse_mid = (inverse_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        inverse_lo = inverse_mid.to(tl.bfloat16)
        inverse_last = (inverse_rest - inverse_mid).to(tl.bfloat16)

        # what outputs of the block read of it
        gram_q_b = tl.dot(q_tile, tl.trans(b_tile))
        readout = tl.where(related, scale[:, None] * gram_q_b, 0.0)
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
        fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        fold_hi = fold_top.to(tl.bfloat16)
        fold_rest = fold - fold_top
        fold_mid = (fold_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        fold_lo = fold_mid.to(tl.bfloat16)
        fold_last = (fold_rest - fold_mid).to(tl.bfloat16)
        gram_q_k = tl.dot(q_tile, tl.trans(k_tile))
        write_readout = tl.where(related, scale[:, None] * gram_q_k, 0.0)
        write_readout = tl.dot(fold_hi, minus_seen_last, write_readout)
        write_readout = tl.dot(fold_lo, minus_seen_lo, write_readout)
        write_readout = tl.dot(fold_last, minus_seen_hi, write_readout)
        write_readout = tl.dot(fold_hi, minus_seen_lo, write_readout)
        write_readout = tl.dot(fold_lo, minus_seen_hi, write_readout)
        write_readout = tl.dot(fold_hi, minus_seen_hi, write_readout)
        slot = (block * (block + 1) // 2 + block) * 2
        fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
        fold_hi = fold_top.to(tl.bfloat16)
        fold_rest = fold - fold_top
        fold_mid = (fold_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
        fold_lo = fold_mid.to(tl.bfloat16)
        fold_last = (fold_rest - fold_mid).to(tl.bfloat16)
        tl.store(place + slot * 3 * (NODE_BLOCK * NODE_BLOCK) + cell, fold_hi)
        tl.store(place + (slot * 3 + 1) * (NODE_BLOCK * NODE_BLOCK) + cell, fold_lo)
        tl.store(place + (slot * 3 + 2) * (NODE_BLOCK * NODE_BLOCK) + cell, fold_last)
        write_readout_top = ((write_readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
            bitcast=True)
        write_readout_hi = write_readout_top.to(tl.bfloat16)
        write_readout_rest = write_readout - write_readout_top
        write_readout_mid = (write_readout_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
            bitcast=True)
        write_readout_lo = write_readout_mid.to(tl.bfloat16)
        write_readout_last = (write_readout_rest - write_readout_mid).to(tl.bfloat16)
        tl.store(place + (slot * 3 + 3) * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_hi)
        tl.store(place + (slot * 3 + 4) * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_lo)
        tl.store(place + (slot * 3 + 5) * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_last)

        # what later blocks read of this one
        for later in range(block + 1, (count + NODE_BLOCK - 1) // NODE_BLOCK):
            node_later = later * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
            inside_later = node_later < count
            word_index_later = later * NODE_BLOCK // 64
            word_later = tl.load(ancestors + first * 2 + word_index + node_later * 2, mask=inside_later,
                other=0)
            reached = tl.max(tl.where(word_later != 0, 1, 0), axis=0)
            reached_at = rows + (7 * VALUE_HEADS + head) * capacity + first
            tl.store(reached_at + block * NODE_BLOCK + later, reached.to(tl.float32))
            if reached != 0:
                # guard_q: iplr.bole:6
                guard_q_later = tl.load(guard_q_at + node_later, mask=inside_later, other=0.0)
                # guard_k: iplr.bole:6
                guard_k_later = tl.load(guard_k_at + node_later, mask=inside_later, other=0.0)
                # guard_v: iplr.bole:6
                guard_v_later = tl.load(guard_v_at + node_later, mask=inside_later, other=0.0)
                # guard_a: iplr.bole:6
                guard_a_later = tl.load(guard_a_at + node_later, mask=inside_later, other=0.0)
                # guard_b: iplr.bole:6
                guard_b_later = tl.load(guard_b_at + node_later, mask=inside_later, other=0.0)
                # nodes with an input that is not finite, as bits of a word
                finite_later = ((tl.abs(guard_q_later) < 3.0e38) & (tl.abs(guard_k_later) < 3.0e38)
                    & (tl.abs(guard_v_later) < 3.0e38) & (tl.abs(guard_a_later) < 3.0e38)
                    & (tl.abs(guard_b_later) < 3.0e38))
                bad_later = tl.sum(tl.where(finite_later, 0,
                    1).to(tl.int64) << (node_later & 63).to(tl.int64), axis=0)
                lost = (word_later & bad) != 0

                # what outputs read
                scale_later = tl.full([NODE_BLOCK], 0.125, tl.float32)
                q_tile_later = tl.load(q_rows + (node_later * q_step)[:, None] + key[None, :],
                    mask=inside_later[:, None], other=0.0)
                gram_q_b_later = tl.dot(q_tile_later, tl.trans(b_tile))
                path_later = tl.where((bad_later & (1 << (node_later & 63).to(tl.int64))) != 0, 0,
                    word_later & ~bad)
                related_later = (((path_later[:, None] >> (node & 32)[None, :].to(tl.int64)).to(tl.int32)
                    & (1 << (node & 31))[None, :]) != 0)
                readout_later = tl.where(related_later, scale_later[:, None] * gram_q_b_later, 0.0)
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
                fold_later_top = ((fold_later.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                    bitcast=True)
                fold_later_hi = fold_later_top.to(tl.bfloat16)
                fold_later_rest = fold_later - fold_later_top
                fold_later_mid = (fold_later_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                fold_later_lo = fold_later_mid.to(tl.bfloat16)
                fold_later_last = (fold_later_rest - fold_later_mid).to(tl.bfloat16)
                gram_q_k_later = tl.dot(q_tile_later, tl.trans(k_tile))
                write_readout_later = tl.where(related_later, scale_later[:, None] * gram_q_k_later, 0.0)
                write_readout_later = tl.dot(fold_later_hi, minus_seen_last, write_readout_later)
                write_readout_later = tl.dot(fold_later_lo, minus_seen_lo, write_readout_later)
                write_readout_later = tl.dot(fold_later_last, minus_seen_hi, write_readout_later)
                write_readout_later = tl.dot(fold_later_hi, minus_seen_lo, write_readout_later)
                write_readout_later = tl.dot(fold_later_lo, minus_seen_hi, write_readout_later)
                write_readout_later = tl.dot(fold_later_hi, minus_seen_hi, write_readout_later)
                # outputs below a non-finite input become NaN
                fold_later = tl.where(lost[:, None], float("nan"), fold_later)
                slot = (later * (later + 1) // 2 + block) * 2
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
                write_readout_later_top = ((write_readout_later.to(tl.int32, bitcast=True) + 0x8000)
                    & -0x10000).to(tl.float32, bitcast=True)
                write_readout_later_hi = write_readout_later_top.to(tl.bfloat16)
                write_readout_later_rest = write_readout_later - write_readout_later_top
                write_readout_later_mid = (write_readout_later_rest.to(tl.int32, bitcast=True)
                    & -0x10000).to(tl.float32, bitcast=True)
                write_readout_later_lo = write_readout_later_mid.to(tl.bfloat16)
                write_readout_later_last = (write_readout_later_rest
                    - write_readout_later_mid).to(tl.bfloat16)
                tl.store(place + (slot * 3 + 3) * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_later_hi)
                tl.store(place + (slot * 3 + 4) * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_later_lo)
                tl.store(place + (slot * 3 + 5) * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_later_last)

                # what unknowns see, with a minus sign
                scale_later_2 = tl.full([NODE_BLOCK], -1.0, tl.float32)
                a_tile_later = tl.load(a_rows + (node_later * a_step)[:, None] + key[None, :],
                    mask=inside_later[:, None], other=0.0)
                gram_a_b_later = tl.dot(a_tile_later, tl.trans(b_tile))
                minus_g_later = tl.where(related_later, -scale_later_2[:, None] * gram_a_b_later, 0.0)
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
                seen_later_top = ((seen_later.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                    bitcast=True)
                seen_later_hi = seen_later_top.to(tl.bfloat16)
                seen_later_rest = seen_later - seen_later_top
                seen_later_mid = (seen_later_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                seen_later_lo = seen_later_mid.to(tl.bfloat16)
                seen_later_last = (seen_later_rest - seen_later_mid).to(tl.bfloat16)
                gram_a_k_later = tl.dot(a_tile_later, tl.trans(k_tile))
                minus_seen_later = tl.where(related_later, -scale_later_2[:, None] * gram_a_k_later, 0.0)
                minus_seen_later = tl.dot(seen_later_hi, minus_seen_last, minus_seen_later)
                minus_seen_later = tl.dot(seen_later_lo, minus_seen_lo, minus_seen_later)
                minus_seen_later = tl.dot(seen_later_last, minus_seen_hi, minus_seen_later)
                minus_seen_later = tl.dot(seen_later_hi, minus_seen_lo, minus_seen_later)
                minus_seen_later = tl.dot(seen_later_lo, minus_seen_hi, minus_seen_later)
                minus_seen_later = tl.dot(seen_later_hi, minus_seen_hi, minus_seen_later)
                slot = (3 + later * (later - 1) // 2 + block) * 2
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
                minus_seen_later_top = ((minus_seen_later.to(tl.int32, bitcast=True) + 0x8000)
                    & -0x10000).to(tl.float32, bitcast=True)
                minus_seen_later_hi = minus_seen_later_top.to(tl.bfloat16)
                minus_seen_later_rest = minus_seen_later - minus_seen_later_top
                minus_seen_later_mid = (minus_seen_later_rest.to(tl.int32, bitcast=True)
                    & -0x10000).to(tl.float32, bitcast=True)
                minus_seen_later_lo = minus_seen_later_mid.to(tl.bfloat16)
                minus_seen_later_last = (minus_seen_later_rest - minus_seen_later_mid).to(tl.bfloat16)
                tl.store(place + (slot * 3 + 3) * (NODE_BLOCK * NODE_BLOCK) + cell, minus_seen_later_hi)
                tl.store(place + (slot * 3 + 4) * (NODE_BLOCK * NODE_BLOCK) + cell, minus_seen_later_lo)
                tl.store(place + (slot * 3 + 5) * (NODE_BLOCK * NODE_BLOCK) + cell, minus_seen_later_last)


