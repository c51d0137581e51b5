@triton.jit
def one_system(
    program, cu_nodes, ancestors, A_log, dt_bias, a, a_stride, b, b_stride, q, q_stride, k, k_stride, rows,
    capacity, folded, signals,
):
    """Once per head: the system of the tree, solved and folded into the readout."""
    head = program % VALUE_HEADS
    request = program // VALUE_HEADS
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key = tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    word = tl.load(ancestors + first + node, mask=inside, other=0)
    A_log_head = tl.load(A_log + head)
    dt_bias_head = tl.load(dt_bias + head)
    a_rows = a + first * a_stride + head
    a_step = a_stride.to(tl.int32)
    a_row = tl.load(a_rows + node * a_step, mask=inside, other=0.0).to(tl.float32)
    b_rows = b + first * b_stride + head
    b_step = b_stride.to(tl.int32)
    b_row = tl.load(b_rows + node * b_step, mask=inside, other=0.0).to(tl.float32)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)

    # row scalars of the head: stored and read back, not computed for every column
    # beta: gated_delta_rule.bole:11
    beta = tl.where(inside, 1.0 / (1.0 + tl.exp(-b_row)), 0.0)
    beta_at = rows + head * capacity + first
    tl.store(beta_at + node, beta, mask=inside)
    # norm_k: gated_delta_rule.bole:9
    k_f32 = k_tile.to(tl.float32)
    square_k = tl.sum(k_f32 * k_f32, axis=1)
    norm_k = tl.where(inside, tl.rsqrt(square_k + 1e-06), 0.0)
    norm_k_at = rows + (VALUE_HEADS + key_head) * capacity + first
    tl.store(norm_k_at + node, norm_k, mask=inside)
    # norm_q: gated_delta_rule.bole:8
    q_f32 = q_tile.to(tl.float32)
    square_q = tl.sum(q_f32 * q_f32, axis=1)
    norm_q = tl.where(inside, tl.rsqrt(square_q + 1e-06), 0.0)
    norm_q_at = rows + (2 * VALUE_HEADS + key_head) * capacity + first
    tl.store(norm_q_at + node, norm_q, mask=inside)
    c_at = rows + (4 * VALUE_HEADS + head) * capacity + first
    c_rest_at = rows + (5 * VALUE_HEADS + head) * capacity + first
    g_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    # log-decay g, and c its sum over the path: gated_delta_rule.bole:10
    exp_A_log = tl.exp(A_log_head)
    softplus_argument = a_row + dt_bias_head
    softplus_part = tl.exp2(tl.abs(softplus_argument) * -1.4426950408889634)
    softplus_a = (tl.maximum(softplus_argument, 0.0) + softplus_part
        * (0.99999994 + softplus_part
        * (-0.49999493 + softplus_part
        * (0.33319086 + softplus_part
        * (-0.24842922 + softplus_part
        * (0.19105825 + softplus_part
        * (-0.13662934 + softplus_part
        * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))))
    g = tl.where(inside, -(exp_A_log * softplus_a), 0.0) * 1.4426950408889634
    g = tl.where(g < -4096.0, -4096.0, g)
    tl.store(g_at + node, g, mask=inside)
    tl.debug_barrier()
    left = word
    c = tl.zeros([NODE_BLOCK], tl.float32)
    c_rest = tl.zeros([NODE_BLOCK], tl.float32)
    for _ in tl.static_range(9):
        # the lowest ancestor left: as a float, a single bit is all exponent
        lowest = left & -left
        ancestor = ((lowest.to(tl.float32).to(tl.int32, bitcast=True) >> 23) & 255) - 127
        g_passed = tl.load(g_at + ancestor, mask=left != 0, other=0.0)
        g_eighths = tl.floor(g_passed * 8.0 + 0.5) * 0.125
        c = c + g_eighths
        c_rest = c_rest + (g_passed - g_eighths)
        left = left ^ lowest
    tl.store(c_at + node, c, mask=inside)
    tl.store(c_rest_at + node, c_rest, mask=inside)
    tl.debug_barrier()
    # beta: gated_delta_rule.bole:11
    beta = tl.load(beta_at + node, mask=inside, other=0.0)
    # norm_k: gated_delta_rule.bole:9
    norm_k = tl.load(norm_k_at + node, mask=inside, other=0.0)
    # norm_q: gated_delta_rule.bole:8
    norm_q = tl.load(norm_q_at + node, mask=inside, other=0.0)
    # log-decay g, and c its sum over the path: gated_delta_rule.bole:10
    c = tl.load(c_at + node, mask=inside, other=0.0)
    c_rest = tl.load(c_rest_at + node, mask=inside, other=0.0)
    g = tl.load(g_at + node, mask=inside, other=0.0)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(beta) < 3.0e38) & ((norm_k > 0.0) & (norm_k < 3.0e38))
        & ((norm_q > 0.0) & (norm_q < 3.0e38)) & (tl.abs(c) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    scaled_norm_q = 0.08838834764831843 * norm_q
    poisoned = (word & bad) != 0
    out_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), tl.exp2(c + c_rest) * scaled_norm_q),
        mask=inside)
    erase_row_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    tl.store(erase_row_at + node, tl.exp2(c + c_rest) * norm_k, mask=inside)

    # G (with a minus sign) and C
    norm_k_to = norm_k * tl.exp2(c_rest)
    gram_k_k = tl.dot(k_tile, tl.trans(k_tile))
    beta_norm_k = beta * norm_k
    beta_norm_k_from = beta_norm_k * tl.exp2(-c_rest)
    decay = tl.exp2(c[:, None] - c[None, :]) * beta_norm_k_from[None, :]
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    minus_g = tl.where(related & (node[:, None] > node[None, :]), -norm_k_to[:, None] * decay * gram_k_k, 0.0)
    scaled_norm_q_to = scaled_norm_q * tl.exp2(c_rest)
    gram_q_k = tl.dot(q_tile, tl.trans(k_tile))
    readout = tl.where(related, scaled_norm_q_to[:, None] * decay * gram_q_k, 0.0)
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


