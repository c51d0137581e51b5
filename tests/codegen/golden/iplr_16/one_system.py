@triton.jit
def one_system(
    program, cu_nodes, ancestors, q, q_stride, k, k_stride, a, a_stride, b, b_stride, rows, capacity, folded,
    signals,
):
    """Once per head: the system of the tree, solved and folded into the readout."""
    head = program % VALUE_HEADS
    request = program // VALUE_HEADS
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key = tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    word = tl.load(ancestors + first + node, mask=inside, other=0)
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
    # guard_q: iplr.bole:6
    q_f32 = q_tile.to(tl.float32)
    guard_q = tl.where(inside, tl.sum(q_f32 * q_f32, axis=1), 0.0)
    # guard_k: iplr.bole:6
    k_f32 = k_tile.to(tl.float32)
    guard_k = tl.where(inside, tl.sum(k_f32 * k_f32, axis=1), 0.0)
    # guard_a: iplr.bole:6
    a_f32 = a_tile.to(tl.float32)
    guard_a = tl.where(inside, tl.sum(a_f32 * a_f32, axis=1), 0.0)
    # guard_b: iplr.bole:6
    b_f32 = b_tile.to(tl.float32)
    guard_b = tl.where(inside, tl.sum(b_f32 * b_f32, axis=1), 0.0)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(guard_q) < 3.0e38) & (tl.abs(guard_k) < 3.0e38) & (tl.abs(guard_a) < 3.0e38)
        & (tl.abs(guard_b) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    scale = tl.full([NODE_BLOCK], 0.125, tl.float32)
    poisoned = (word & bad) != 0
    scale_2 = tl.full([NODE_BLOCK], -1.0, tl.float32)
    out_row_at = rows + (5 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), scale), mask=inside)
    erase_row_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    tl.store(erase_row_at + node, scale_2, mask=inside)

    # G (with a minus sign) and C
    gram_a_b = tl.dot(a_tile, tl.trans(b_tile))
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    minus_g = tl.where(related & (node[:, None] > node[None, :]), -scale_2[:, None] * gram_a_b, 0.0)
    gram_q_b = tl.dot(q_tile, tl.trans(b_tile))
    readout = tl.where(related, scale[:, None] * gram_q_b, 0.0)
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
    gram_q_k = tl.dot(q_tile, tl.trans(k_tile))
    write_readout = tl.where(related, scale[:, None] * gram_q_k, 0.0)
    gram_a_k = tl.dot(a_tile, tl.trans(k_tile))
    minus_seen = tl.where(related & (node[:, None] > node[None, :]), -scale_2[:, None] * gram_a_k, 0.0)
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

    # all threads have stored: let the value programs of the head go on
    tl.debug_barrier()
    tl.atomic_add(signals + program * (1 + VALUE_TILES), 1, sem="release")


