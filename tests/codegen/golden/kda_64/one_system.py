@triton.jit
def one_system(
    program, cu_nodes, ancestors, A_log, b, b_stride, q, q_stride, k, k_stride, f, f_stride, dt_bias, rows,
    capacity, decayed, products, depths, folded, signals,
):
    """Once per head: the system of the tree, solved and folded into the readout."""
    head = program % VALUE_HEADS
    request = program // VALUE_HEADS
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key_c0 = tl.arange(0, B_K)
    key_c1 = 64 + tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    word = tl.load(ancestors + first + node, mask=inside, other=0)
    A_log_head = tl.load(A_log + head)
    b_rows = b + first * b_stride + head
    b_step = b_stride.to(tl.int32)
    b_row = tl.load(b_rows + node * b_step, mask=inside, other=0.0).to(tl.float32)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile_c0 = tl.load(q_rows + (node * q_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    q_tile_c1 = tl.load(q_rows + (node * q_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile_c0 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    k_tile_c1 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    f_rows = f + first * f_stride + key_head * D_K
    f_step = f_stride.to(tl.int32)
    f_tile_c0 = tl.load(f_rows + (node * f_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    f_tile_c1 = tl.load(f_rows + (node * f_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    # exp_A_log: kda.bole:11
    exp_A_log = tl.where(inside, tl.exp(A_log_head), 0.0)
    # beta: kda.bole:12
    beta = tl.where(inside, 1.0 / (1.0 + tl.exp(-b_row)), 0.0)
    # norm_k: kda.bole:10
    k_f32_c0 = k_tile_c0.to(tl.float32)
    k_f32_c1 = k_tile_c1.to(tl.float32)
    square_k = tl.sum(k_f32_c0 * k_f32_c0, axis=1) + tl.sum(k_f32_c1 * k_f32_c1, axis=1)
    norm_k = tl.where(inside, tl.rsqrt(square_k + 1e-06), 0.0)
    # norm_q: kda.bole:9
    q_f32_c0 = q_tile_c0.to(tl.float32)
    q_f32_c1 = q_tile_c1.to(tl.float32)
    square_q = tl.sum(q_f32_c0 * q_f32_c0, axis=1) + tl.sum(q_f32_c1 * q_f32_c1, axis=1)
    norm_q = tl.where(inside, tl.rsqrt(square_q + 1e-06), 0.0)
    # guard_f: kda.bole:8
    f_f32_c0 = f_tile_c0.to(tl.float32)
    f_f32_c1 = f_tile_c1.to(tl.float32)
    guard_f = tl.where(inside, tl.sum(f_f32_c0 * f_f32_c0, axis=1) + tl.sum(f_f32_c1 * f_f32_c1, axis=1), 0.0)
    # decay: kda.bole:13
    dt_bias_head = tl.load(dt_bias + key_head * D_K + key_c0, mask=key_c0 < D_K, other=0.0)[None, :]
    scaled_dt_bias_c0 = dt_bias_head + f_f32_c0
    softplus_part = tl.exp2(tl.abs(scaled_dt_bias_c0) * -1.4426950408889634)
    scaled_dt_bias_c0_2 = (tl.maximum(scaled_dt_bias_c0, 0.0) + softplus_part
        * (0.99999994 + softplus_part
        * (-0.49999493 + softplus_part
        * (0.33319086 + softplus_part
        * (-0.24842922 + softplus_part
        * (0.19105825 + softplus_part
        * (-0.13662934 + softplus_part
        * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))))
    scaled_dt_bias_c0_3 = exp_A_log[:, None] * scaled_dt_bias_c0_2
    scaled_g_c0 = -scaled_dt_bias_c0_3
    scaled_dt_bias_c0_4 = tl.exp(scaled_g_c0)
    gates_c0 = tl.where(inside[:, None], scaled_dt_bias_c0_4, 1.0)
    dt_bias_head_2 = tl.load(dt_bias + key_head * D_K + key_c1, mask=key_c1 < D_K, other=0.0)[None, :]
    scaled_dt_bias_c1 = dt_bias_head_2 + f_f32_c1
    softplus_part_2 = tl.exp2(tl.abs(scaled_dt_bias_c1) * -1.4426950408889634)
    scaled_dt_bias_c1_2 = (tl.maximum(scaled_dt_bias_c1, 0.0) + softplus_part_2
        * (0.99999994 + softplus_part_2
        * (-0.49999493 + softplus_part_2
        * (0.33319086 + softplus_part_2
        * (-0.24842922 + softplus_part_2
        * (0.19105825 + softplus_part_2
        * (-0.13662934 + softplus_part_2
        * (0.07822299 + softplus_part_2 * (-0.029503778 + softplus_part_2 * 0.0052324063)))))))))
    scaled_dt_bias_c1_3 = exp_A_log[:, None] * scaled_dt_bias_c1_2
    scaled_g_c1 = -scaled_dt_bias_c1_3
    scaled_dt_bias_c1_4 = tl.exp(scaled_g_c1)
    gates_c1 = tl.where(inside[:, None], scaled_dt_bias_c1_4, 1.0)
    gates_size = tl.sum(tl.abs(gates_c0), axis=1) + tl.sum(tl.abs(gates_c1), axis=1)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(exp_A_log) < 3.0e38) & (tl.abs(beta) < 3.0e38) & ((norm_k > 0.0) & (norm_k < 3.0e38))
        & ((norm_q > 0.0) & (norm_q < 3.0e38)) & (tl.abs(guard_f) < 3.0e38) & (tl.abs(gates_size) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    scaled_norm_q = 0.08838834764831843 * norm_q
    poisoned = (word & bad) != 0
    out_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), scaled_norm_q), mask=inside)
    erase_row_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    tl.store(erase_row_at + node, norm_k, mask=inside)

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
    # rows that other threads have stored are read below
    tl.debug_barrier()

    # every node walks up its path; what it reads is multiplied by what it has passed
    k_k_rows = products + (head * capacity + first) * COLUMNS
    q_k_rows = products + ((VALUE_HEADS + head) * capacity + first) * COLUMNS
    decayed_0_rows = decayed + (head * capacity + first) * D_K
    decayed_1_rows = decayed + ((VALUE_HEADS + head) * capacity + first) * D_K
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=0), axis=0)
    channel = tl.arange(0, 128)
    k_tile_walk = tl.load(k_rows + (node * k_step)[:, None] + channel[None, :], mask=inside[:, None],
        other=0.0)
    k_f32_walk = k_tile_walk.to(tl.float32)
    q_tile_walk = tl.load(q_rows + (node * q_step)[:, None] + channel[None, :], mask=inside[:, None],
        other=0.0)
    q_f32_walk = q_tile_walk.to(tl.float32)
    reached = tl.where(inside, node, -1)
    passed = tl.full([NODE_BLOCK, 128], 1.0, tl.float32)
    for _ in range(0, deepest + 1):
        on_path = reached >= 0
        parent = tl.load(parent_at + reached, mask=on_path, other=-1.0).to(tl.int32)
        column = node * COLUMNS + reached
        k_reached = tl.load(k_rows + (reached * k_step)[:, None] + channel[None, :], mask=on_path[:, None],
            other=0.0).to(tl.float32)
        k_decayed = passed * k_reached
        tl.store(k_k_rows + column, tl.sum(k_f32_walk * k_decayed, axis=1), mask=on_path)
        tl.store(q_k_rows + column, tl.sum(q_f32_walk * k_decayed, axis=1), mask=on_path)
        gates_reached = tl.load(decayed_2_rows + (reached * D_K)[:, None] + channel[None, :],
            mask=on_path[:, None], other=1.0)
        passed = passed * gates_reached
        reached = parent
    # what reads the state, times the decays of its path
    tl.store(decayed_0_rows + (node * D_K)[:, None] + channel[None, :], passed * k_f32_walk,
        mask=inside[:, None])
    tl.store(decayed_1_rows + (node * D_K)[:, None] + channel[None, :], passed * q_f32_walk,
        mask=inside[:, None])
    # products that other threads have stored are read below
    tl.debug_barrier()

    # G (with a minus sign) and C
    walked_k_k = tl.where(node[:, None] >= node[None, :],
        tl.load(k_k_rows + (node * COLUMNS)[:, None] + node[None, :], mask=inside[:, None], other=0.0), 0.0)
    beta_norm_k = beta * norm_k
    path = tl.where(finite, word & ~bad, 0)
    path_lo = path.to(tl.int32)
    path_hi = (path >> 32).to(tl.int32)
    related = (((tl.where((node[None, :] & 32) == 0, path_lo[:, None],
        path_hi[:, None]) >> (node[None, :] & 31)) & 1) != 0)
    minus_g = tl.where(related & (node[:, None] > node[None, :]),
        -norm_k[:, None] * beta_norm_k[None, :] * walked_k_k, 0.0)
    walked_q_k = tl.where(node[:, None] >= node[None, :],
        tl.load(q_k_rows + (node * COLUMNS)[:, None] + node[None, :], mask=inside[:, None], other=0.0), 0.0)
    readout = tl.where(related, scaled_norm_q[:, None] * beta_norm_k[None, :] * walked_q_k, 0.0)
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

    # store the folded tiles, piece by piece
    place = folded + program.to(tl.int64) * 2 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold_hi = fold_top.to(tl.bfloat16)
    fold_lo = (fold - fold_top).to(tl.bfloat16)
    tl.store(place + cell, fold_hi)
    tl.store(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell, fold_lo)

    # all threads have stored: let the value programs of the head go on
    tl.debug_barrier()
    tl.atomic_add(signals + program * (1 + VALUE_TILES), 1, sem="release")


