@triton.jit
def factors(
    cu_nodes, ancestors, r, r_stride, w, w_stride, k, k_stride, a, a_stride, k_k, rows, capacity, decayed,
    k_a, products, depths, folded,
):
    """Once per head: the system of the tree, solved and folded into the readout."""
    tl.extra.cuda.gdc_wait()
    program = tl.program_id(0)
    head = program % VALUE_HEADS
    request = program // VALUE_HEADS
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key_c0 = tl.arange(0, B_K)
    key_c1 = 32 + tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    # after the wait: a value program that runs knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    word = tl.load(ancestors + first + node, mask=inside, other=0)
    r_rows = r + first * r_stride + key_head * D_K
    r_step = r_stride.to(tl.int32)
    r_tile_c0 = tl.load(r_rows + (node * r_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    r_tile_c1 = tl.load(r_rows + (node * r_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    w_rows = w + first * w_stride + key_head * D_K
    w_step = w_stride.to(tl.int32)
    w_tile_c0 = tl.load(w_rows + (node * w_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    w_tile_c1 = tl.load(w_rows + (node * w_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile_c0 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    k_tile_c1 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    a_rows = a + first * a_stride + key_head * D_K
    a_step = a_stride.to(tl.int32)
    a_tile_c0 = tl.load(a_rows + (node * a_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    a_tile_c1 = tl.load(a_rows + (node * a_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    # rsqrt_k: rwkv7.bole:9
    k_f32_c0 = k_tile_c0.to(tl.float32)
    k_k_head = tl.load(k_k + key_head * D_K + key_c0, mask=key_c0 < D_K, other=0.0)[None, :]
    scaled_k_c0 = k_f32_c0 * k_k_head
    k_f32_c1 = k_tile_c1.to(tl.float32)
    k_k_head_2 = tl.load(k_k + key_head * D_K + key_c1, mask=key_c1 < D_K, other=0.0)[None, :]
    scaled_k_c1 = k_f32_c1 * k_k_head_2
    square_k = tl.sum(scaled_k_c0 * scaled_k_c0, axis=1) + tl.sum(scaled_k_c1 * scaled_k_c1, axis=1)
    rsqrt_k = tl.where(inside, tl.rsqrt(square_k + 1e-06), 0.0)
    # guard_r: rwkv7.bole:8
    r_f32_c0 = r_tile_c0.to(tl.float32)
    r_f32_c1 = r_tile_c1.to(tl.float32)
    guard_r = tl.where(inside, tl.sum(r_f32_c0 * r_f32_c0, axis=1) + tl.sum(r_f32_c1 * r_f32_c1, axis=1), 0.0)
    # guard_w: rwkv7.bole:8
    w_f32_c0 = w_tile_c0.to(tl.float32)
    w_f32_c1 = w_tile_c1.to(tl.float32)
    guard_w = tl.where(inside, tl.sum(w_f32_c0 * w_f32_c0, axis=1) + tl.sum(w_f32_c1 * w_f32_c1, axis=1), 0.0)
    # guard_k: rwkv7.bole:8
    guard_k = tl.where(inside, tl.sum(k_f32_c0 * k_f32_c0, axis=1) + tl.sum(k_f32_c1 * k_f32_c1, axis=1), 0.0)
    # guard_a: rwkv7.bole:8
    a_f32_c0 = a_tile_c0.to(tl.float32)
    a_f32_c1 = a_tile_c1.to(tl.float32)
    guard_a = tl.where(inside, tl.sum(a_f32_c0 * a_f32_c0, axis=1) + tl.sum(a_f32_c1 * a_f32_c1, axis=1), 0.0)
    # decay: rwkv7.bole:12
    scaled_w_c0 = 1.0 / (1.0 + tl.exp(-w_f32_c0))
    scaled_w_c0_2 = 0.6065306597126334 * scaled_w_c0
    scaled_w_c0_3 = -scaled_w_c0_2
    scaled_decay_c0 = tl.exp(scaled_w_c0_3)
    gates_c0 = tl.where(inside[:, None], scaled_decay_c0, 1.0)
    scaled_w_c1 = 1.0 / (1.0 + tl.exp(-w_f32_c1))
    scaled_w_c1_2 = 0.6065306597126334 * scaled_w_c1
    scaled_w_c1_3 = -scaled_w_c1_2
    scaled_decay_c1 = tl.exp(scaled_w_c1_3)
    gates_c1 = tl.where(inside[:, None], scaled_decay_c1, 1.0)
    gates_size = tl.sum(tl.abs(gates_c0), axis=1) + tl.sum(tl.abs(gates_c1), axis=1)
    # nodes with an input that is not finite, as bits of a word
    finite = (((rsqrt_k > 0.0) & (rsqrt_k < 3.0e38)) & (tl.abs(guard_r) < 3.0e38)
        & (tl.abs(guard_w) < 3.0e38) & (tl.abs(guard_k) < 3.0e38) & (tl.abs(guard_a) < 3.0e38)
        & (tl.abs(gates_size) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    poisoned = (word & bad) != 0
    out_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), 1.0), mask=inside)
    erase_row_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    tl.store(erase_row_at + node, rsqrt_k, mask=inside)

    # for the walks: parents, decays, other vectors that are no inputs
    # without the bit below the highest, rounding to a float keeps the exponent
    own = 1 << (node & 63).to(tl.int64)
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~own
    parent = tl.where(left_0 != 0, ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32,
        bitcast=True) >> 23) - 127, -1)
    parent_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    tl.store(parent_at + node, parent.to(tl.float32), mask=inside)
    decayed_2_rows = decayed + ((2 * VALUE_HEADS + head) * capacity + first) * D_K
    tl.store(decayed_2_rows + (node * D_K)[:, None] + key_c0[None, :],
        tl.where(finite[:, None], gates_c0, 1.0), mask=inside[:, None])
    tl.store(decayed_2_rows + (node * D_K)[:, None] + key_c1[None, :],
        tl.where(finite[:, None], gates_c1, 1.0), mask=inside[:, None])
    scaled_kappa_c0 = rsqrt_k[:, None] * scaled_k_c0
    scaled_a_c0 = 1.0 / (1.0 + tl.exp(-a_f32_c0))
    scaled_k_c0_2 = scaled_kappa_c0 * scaled_a_c0
    decayed_3_rows = decayed + ((3 * VALUE_HEADS + head) * capacity + first) * D_K
    tl.store(decayed_3_rows + (node * D_K)[:, None] + key_c0[None, :], scaled_k_c0_2, mask=inside[:, None])
    scaled_kappa_c1 = rsqrt_k[:, None] * scaled_k_c1
    scaled_a_c1 = 1.0 / (1.0 + tl.exp(-a_f32_c1))
    scaled_k_c1_2 = scaled_kappa_c1 * scaled_a_c1
    tl.store(decayed_3_rows + (node * D_K)[:, None] + key_c1[None, :], scaled_k_c1_2, mask=inside[:, None])
    k_a_head = tl.load(k_a + key_head * D_K + key_c0, mask=key_c0 < D_K, other=0.0)[None, :]
    scaled_a_c0_2 = scaled_a_c0 * k_a_head
    scaled_a_c0_3 = 1.0 + scaled_a_c0_2
    scaled_a_c0_4 = scaled_a_c0_3 - k_a_head
    scaled_k_c0_3 = k_f32_c0 * scaled_a_c0_4
    decayed_4_rows = decayed + ((4 * VALUE_HEADS + head) * capacity + first) * D_K
    tl.store(decayed_4_rows + (node * D_K)[:, None] + key_c0[None, :], scaled_k_c0_3, mask=inside[:, None])
    k_a_head_2 = tl.load(k_a + key_head * D_K + key_c1, mask=key_c1 < D_K, other=0.0)[None, :]
    scaled_a_c1_2 = scaled_a_c1 * k_a_head_2
    scaled_a_c1_3 = 1.0 + scaled_a_c1_2
    scaled_a_c1_4 = scaled_a_c1_3 - k_a_head_2
    scaled_k_c1_3 = k_f32_c1 * scaled_a_c1_4
    tl.store(decayed_4_rows + (node * D_K)[:, None] + key_c1[None, :], scaled_k_c1_3, mask=inside[:, None])
    # rows that other threads have stored are read below
    tl.debug_barrier()

    # every node walks up its path; what it reads is multiplied by what it has passed
    k_k_rows = products + (head * capacity + first) * COLUMNS
    k_k_rows_2 = products + ((VALUE_HEADS + head) * capacity + first) * COLUMNS
    r_k_rows = products + ((2 * VALUE_HEADS + head) * capacity + first) * COLUMNS
    r_k_rows_2 = products + ((3 * VALUE_HEADS + head) * capacity + first) * COLUMNS
    decayed_0_rows = decayed + (head * capacity + first) * D_K
    decayed_1_rows = decayed + ((VALUE_HEADS + head) * capacity + first) * D_K
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=0), axis=0)
    channel = tl.arange(0, 64)
    k_tile_walk = tl.load(k_rows + (node * k_step)[:, None] + channel[None, :], mask=inside[:, None],
        other=0.0)
    k_f32_walk = k_tile_walk.to(tl.float32)
    k_k_head_3 = tl.load(k_k + key_head * D_K + channel, mask=channel < D_K, other=0.0)[None, :]
    scaled_k_walk = k_f32_walk * k_k_head_3
    r_tile_walk = tl.load(r_rows + (node * r_step)[:, None] + channel[None, :], mask=inside[:, None],
        other=0.0)
    r_f32_walk = r_tile_walk.to(tl.float32)
    reached = tl.where(inside, node, -1)
    passed_above = tl.full([NODE_BLOCK, 64], 1.0, tl.float32)
    passed = tl.full([NODE_BLOCK, 64], 1.0, tl.float32)
    for _ in range(0, deepest + 1):
        on_path = reached >= 0
        parent = tl.load(parent_at + reached, mask=on_path, other=-1.0).to(tl.int32)
        column = node * COLUMNS + reached
        k_reached = tl.load(decayed_3_rows + (reached * D_K)[:, None] + channel[None, :],
            mask=on_path[:, None], other=0.0)
        k_decayed = passed_above * k_reached
        tl.store(k_k_rows + column, tl.sum(scaled_k_walk * k_decayed, axis=1), mask=on_path)
        k_decayed_2 = passed * k_reached
        tl.store(r_k_rows + column, tl.sum(r_f32_walk * k_decayed_2, axis=1), mask=on_path)
        k_reached_2 = tl.load(decayed_4_rows + (reached * D_K)[:, None] + channel[None, :],
            mask=on_path[:, None], other=0.0)
        k_decayed_3 = passed_above * k_reached_2
        tl.store(k_k_rows_2 + column, tl.sum(scaled_k_walk * k_decayed_3, axis=1), mask=on_path)
        k_decayed_4 = passed * k_reached_2
        tl.store(r_k_rows_2 + column, tl.sum(r_f32_walk * k_decayed_4, axis=1), mask=on_path)
        gates_reached = tl.load(decayed_2_rows + (reached * D_K)[:, None] + channel[None, :],
            mask=on_path[:, None], other=1.0)
        passed_above = passed_above * tl.where((reached == node)[:, None], 1.0, gates_reached)
        passed = passed * gates_reached
        reached = parent
    # what reads the state, times the decays of its path
    tl.store(decayed_0_rows + (node * D_K)[:, None] + channel[None, :], passed_above * scaled_k_walk,
        mask=inside[:, None])
    tl.store(decayed_1_rows + (node * D_K)[:, None] + channel[None, :], passed * r_f32_walk,
        mask=inside[:, None])
    # products that other threads have stored are read below
    tl.debug_barrier()

    # G (with a minus sign) and C
    walked_k_k = tl.where(node[:, None] >= node[None, :],
        tl.load(k_k_rows + (node * COLUMNS)[:, None] + node[None, :], mask=inside[:, None], other=0.0), 0.0)
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    minus_g = tl.where(related & (node[:, None] > node[None, :]), -rsqrt_k[:, None] * walked_k_k, 0.0)
    walked_r_k = tl.where(node[:, None] >= node[None, :],
        tl.load(r_k_rows + (node * COLUMNS)[:, None] + node[None, :], mask=inside[:, None], other=0.0), 0.0)
    readout = tl.where(related, walked_r_k, 0.0)
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

    # F = C (I + Z) (I + E + E^2), with Z exact in bfloat16
    readout_top = ((readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    readout_hi = readout_top.to(tl.bfloat16)
    readout_rest = readout - readout_top
    readout_mid = (readout_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    readout_lo = readout_mid.to(tl.bfloat16)
    readout_last = (readout_rest - readout_mid).to(tl.bfloat16)
    fold = tl.dot(readout_last, inverse_whole_hi, readout)
    fold = tl.dot(readout_lo, inverse_whole_hi, fold)
    fold = tl.dot(readout_hi, inverse_whole_hi, fold)
    fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold_hi = fold_top.to(tl.bfloat16)
    fold_lo = (fold - fold_top).to(tl.bfloat16)
    inverse_correction_top = ((inverse_correction.to(tl.int32, bitcast=True) + 0x8000)
        & -0x10000).to(tl.float32, bitcast=True)
    inverse_correction_hi = inverse_correction_top.to(tl.bfloat16)
    inverse_correction_lo = (inverse_correction - inverse_correction_top).to(tl.bfloat16)
    fold = tl.dot(fold_hi, inverse_correction_lo, fold)
    fold = tl.dot(fold_lo, inverse_correction_hi, fold)
    fold = tl.dot(fold_hi, inverse_correction_hi, fold)

    # pure writes: N - F M
    walked_r_k_2 = tl.where(node[:, None] >= node[None, :],
        tl.load(r_k_rows_2 + (node * COLUMNS)[:, None] + node[None, :], mask=inside[:, None], other=0.0), 0.0)
    write_readout = tl.where(related, walked_r_k_2, 0.0)
    walked_k_k_2 = tl.where(node[:, None] >= node[None, :],
        tl.load(k_k_rows_2 + (node * COLUMNS)[:, None] + node[None, :], mask=inside[:, None], other=0.0), 0.0)
    minus_seen = tl.where(related & (node[:, None] > node[None, :]), -rsqrt_k[:, None] * walked_k_k_2, 0.0)
    fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold_hi = fold_top.to(tl.bfloat16)
    fold_lo = (fold - fold_top).to(tl.bfloat16)
    minus_seen_top = ((minus_seen.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    minus_seen_hi = minus_seen_top.to(tl.bfloat16)
    minus_seen_lo = (minus_seen - minus_seen_top).to(tl.bfloat16)
    write_readout = tl.dot(fold_hi, minus_seen_lo, write_readout)
    write_readout = tl.dot(fold_lo, minus_seen_hi, write_readout)
    write_readout = tl.dot(fold_hi, minus_seen_hi, write_readout)

    # store the folded tiles, piece by piece
    place = folded + program.to(tl.int64) * 4 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold_hi = fold_top.to(tl.bfloat16)
    fold_lo = (fold - fold_top).to(tl.bfloat16)
    write_readout_top = ((write_readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    write_readout_hi = write_readout_top.to(tl.bfloat16)
    write_readout_lo = (write_readout - write_readout_top).to(tl.bfloat16)
    tl.store(place + cell, fold_hi)
    tl.store(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell, fold_lo)
    tl.store(place + 2 * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_hi)
    tl.store(place + 3 * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_lo)


