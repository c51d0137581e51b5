@triton.jit
def one_system(program, cu_nodes, signals, ancestors, rows, capacity, passing, mixed, folded):
    """Once per head: the system of the tree, solved and folded into the readout."""
    head = program % VALUE_HEADS
    request = program // VALUE_HEADS
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    signals_head = signals + request * SIGNALS + 1 + head * (1 + VALUE_TILES)
    launch = tl.load(signals_head) + 1
    key = tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    word = tl.load(ancestors + first + node, mask=inside, other=0)

    # what follows reads what other programs prepare for this request
    prepared = launch * PREPARING
    while tl.atomic_add(signals + request * SIGNALS, 0, sem="acquire") - prepared < 0:
        pass
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
    q_rows = passing + first * PASSING_CHANNELS + key_head * D_K
    q_tile = tl.load(q_rows + (node * PASSING_CHANNELS)[:, None] + key[None, :], mask=inside[:, None],
        other=0.0)
    k_rows = mixed + first * KEPT_CHANNELS + key_head * D_K
    k_tile = tl.load(k_rows + (node * KEPT_CHANNELS)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    gram_k_k = tl.dot(k_tile, tl.trans(k_tile))
    gram_q_k = tl.dot(q_tile, tl.trans(k_tile))
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(beta) < 3.0e38) & ((norm_k > 0.0) & (norm_k < 3.0e38))
        & ((norm_q > 0.0) & (norm_q < 3.0e38)) & (tl.abs(guard_v) < 3.0e38) & (tl.abs(c) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    scaled_norm_q = 0.08838834764831843 * norm_q
    poisoned = (word & bad) != 0
    out_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), tl.exp2(c + c_rest) * scaled_norm_q),
        mask=inside)
    erase_row_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    tl.store(erase_row_at + node, tl.exp2(c + c_rest) * norm_k, mask=inside)

    # G (with a minus sign) and C
    norm_k_to = norm_k * tl.exp2(c_rest)
    beta_norm_k = beta * norm_k
    beta_norm_k_from = beta_norm_k * tl.exp2(-c_rest)
    decay = tl.exp2(c[:, None] - c[None, :]) * beta_norm_k_from[None, :]
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    minus_g = tl.where(related & (node[:, None] > node[None, :]), -norm_k_to[:, None] * decay * gram_k_k, 0.0)
    scaled_norm_q_to = scaled_norm_q * tl.exp2(c_rest)
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
    tl.atomic_add(signals_head, 1, sem="release")


