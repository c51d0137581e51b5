@triton.jit
def factors(cu_nodes, ancestors, q, q_stride, k1, k1_stride, k2, k2_stride, rows, capacity, folded):
    """Once per head: the system of the tree, solved and folded into the readout."""
    program = tl.program_id(0)
    head = program % VALUE_HEADS
    request = program // VALUE_HEADS
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key = tl.arange(0, B_K)
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count

    # not from the prepare kernel, which writes row scalars only
    word = tl.load(ancestors + first + node, mask=inside, other=0)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k1_rows = k1 + first * k1_stride + key_head * D_K
    k1_step = k1_stride.to(tl.int32)
    k1_tile = tl.load(k1_rows + (node * k1_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k2_rows = k2 + first * k2_stride + key_head * D_K
    k2_step = k2_stride.to(tl.int32)
    k2_tile = tl.load(k2_rows + (node * k2_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    gram_k1_k1 = tl.dot(k1_tile, tl.trans(k1_tile))
    gram_k1_k2 = tl.dot(k1_tile, tl.trans(k2_tile))
    gram_k2_k1 = tl.dot(k2_tile, tl.trans(k1_tile))
    gram_k2_k2 = tl.dot(k2_tile, tl.trans(k2_tile))
    gram_q_k1 = tl.dot(q_tile, tl.trans(k1_tile))
    gram_q_k2 = tl.dot(q_tile, tl.trans(k2_tile))
    tl.extra.cuda.gdc_wait()
    # after the wait: a value program that runs knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    # sigmoid_b1: gated_delta_product.bole:14
    sigmoid_b1_at = rows + head * capacity + first
    sigmoid_b1 = tl.load(sigmoid_b1_at + node, mask=inside, other=0.0)
    # norm_k1: gated_delta_product.bole:11
    norm_k1_at = rows + (VALUE_HEADS + key_head) * capacity + first
    norm_k1 = tl.load(norm_k1_at + node, mask=inside, other=0.0)
    # sigmoid_b2: gated_delta_product.bole:16
    sigmoid_b2_at = rows + (2 * VALUE_HEADS + head) * capacity + first
    sigmoid_b2 = tl.load(sigmoid_b2_at + node, mask=inside, other=0.0)
    # scaled_b2: gated_delta_product.bole:16
    scaled_b2_at = rows + (3 * VALUE_HEADS + head) * capacity + first
    scaled_b2 = tl.load(scaled_b2_at + node, mask=inside, other=0.0)
    # norm_k2: gated_delta_product.bole:11
    norm_k2_at = rows + (4 * VALUE_HEADS + key_head) * capacity + first
    norm_k2 = tl.load(norm_k2_at + node, mask=inside, other=0.0)
    # norm_q: gated_delta_product.bole:10
    norm_q_at = rows + (5 * VALUE_HEADS + key_head) * capacity + first
    norm_q = tl.load(norm_q_at + node, mask=inside, other=0.0)
    # guard_v1: gated_delta_product.bole:8
    guard_v1_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    guard_v1 = tl.load(guard_v1_at + node, mask=inside, other=0.0)
    # guard_v2: gated_delta_product.bole:8
    guard_v2_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    guard_v2 = tl.load(guard_v2_at + node, mask=inside, other=0.0)
    # log-decay g, and c its sum over the path: gated_delta_product.bole:12
    c_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    c = tl.load(c_at + node, mask=inside, other=0.0)
    c_rest_at = rows + (9 * VALUE_HEADS + head) * capacity + first
    c_rest = tl.load(c_rest_at + node, mask=inside, other=0.0)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(sigmoid_b1) < 3.0e38) & ((norm_k1 > 0.0) & (norm_k1 < 3.0e38))
        & (tl.abs(sigmoid_b2) < 3.0e38) & (tl.abs(scaled_b2) < 3.0e38)
        & ((norm_k2 > 0.0) & (norm_k2 < 3.0e38)) & ((norm_q > 0.0) & (norm_q < 3.0e38))
        & (tl.abs(guard_v1) < 3.0e38) & (tl.abs(guard_v2) < 3.0e38) & (tl.abs(c) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    scaled_norm_q = 0.125 * norm_q
    poisoned = (word & bad) != 0
    scaled_sigmoid_b1_norm_k1 = 2.0 * sigmoid_b1 * norm_k1
    scaled_sigmoid_b2_norm_k2 = 2.0 * sigmoid_b2 * norm_k2
    out_row_at = rows + (10 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), tl.exp2(c + c_rest) * scaled_norm_q),
        mask=inside)
    erase_row_at = rows + (11 * VALUE_HEADS + head) * capacity + first
    tl.store(erase_row_at + node, tl.exp2(c + c_rest) * scaled_sigmoid_b1_norm_k1, mask=inside)
    erase_row1_at = rows + (12 * VALUE_HEADS + head) * capacity + first
    tl.store(erase_row1_at + node, tl.exp2(c + c_rest) * scaled_sigmoid_b2_norm_k2, mask=inside)
    sigmoid_b1_at_2 = rows + (13 * VALUE_HEADS + head) * capacity + first
    tl.store(sigmoid_b1_at_2 + node, sigmoid_b1, mask=inside)
    sigmoid_b2_at_2 = rows + (14 * VALUE_HEADS + head) * capacity + first
    tl.store(sigmoid_b2_at_2 + node, sigmoid_b2, mask=inside)

    # pair 0: G (with a minus sign)
    scaled_sigmoid_b1_norm_k1_to = scaled_sigmoid_b1_norm_k1 * tl.exp2(c_rest)
    rest_from = tl.exp2(-c_rest)
    decay = tl.exp2(c[:, None] - c[None, :]) * rest_from[None, :]
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    minus_g01 = tl.where(related & (node[:, None] > node[None, :]),
        -scaled_sigmoid_b1_norm_k1_to[:, None] * decay * norm_k2[None, :] * gram_k1_k2, 0.0)
    minus_g01_top = ((minus_g01.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g01_hi = minus_g01_top.to(tl.bfloat16)
    minus_g01_lo = (minus_g01 - minus_g01_top).to(tl.bfloat16)
    minus_g00 = tl.where(related & (node[:, None] > node[None, :]),
        -scaled_sigmoid_b1_norm_k1_to[:, None] * decay * norm_k1[None, :] * gram_k1_k1, 0.0)
    # (I+G)^-1, rough: I + Z, Z <- -G - Z G in bfloat16
    minus_g00_top = ((minus_g00.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g00_hi = minus_g00_top.to(tl.bfloat16)
    inverse_rough = minus_g00_hi
    inverse_rough = tl.dot(inverse_rough, minus_g00_hi, minus_g00).to(tl.bfloat16)
    inverse_rough = tl.dot(inverse_rough, minus_g00_hi, minus_g00).to(tl.bfloat16)
    inverse_whole = tl.dot(inverse_rough, minus_g00_hi, minus_g00)
    inverse_whole_top = ((inverse_whole.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    inverse_whole_hi = inverse_whole_top.to(tl.bfloat16)
    # what is missing: E = -G - Z - G Z, and E + E^2
    minus_g00_top = ((minus_g00.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g00_hi = minus_g00_top.to(tl.bfloat16)
    minus_g00_rest = minus_g00 - minus_g00_top
    minus_g00_mid = (minus_g00_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    minus_g00_lo = minus_g00_mid.to(tl.bfloat16)
    minus_g00_last = (minus_g00_rest - minus_g00_mid).to(tl.bfloat16)
    inverse_residual = minus_g00 - inverse_whole_top
    inverse_residual = tl.dot(minus_g00_last, inverse_whole_hi, inverse_residual)
    inverse_residual = tl.dot(minus_g00_lo, inverse_whole_hi, inverse_residual)
    inverse_residual = tl.dot(minus_g00_hi, inverse_whole_hi, inverse_residual)
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

    # pair 1: G (with a minus sign)
    # row scalars once more, from memory: they would wait in registers
    tl.debug_barrier()
    rows_again = rows + (first + node)
    norm_k1 = tl.load(rows_again + (VALUE_HEADS + key_head) * capacity, mask=inside, other=0.0)
    sigmoid_b2 = tl.load(rows_again + (2 * VALUE_HEADS + head) * capacity, mask=inside, other=0.0)
    scaled_b2 = tl.load(rows_again + (3 * VALUE_HEADS + head) * capacity, mask=inside, other=0.0)
    norm_k2 = tl.load(rows_again + (4 * VALUE_HEADS + key_head) * capacity, mask=inside, other=0.0)
    c = tl.load(rows_again + (8 * VALUE_HEADS + head) * capacity, mask=inside, other=0.0)
    c_rest = tl.load(rows_again + (9 * VALUE_HEADS + head) * capacity, mask=inside, other=0.0)
    scaled_sigmoid_b2_norm_k2_2 = 2.0 * sigmoid_b2 * norm_k2
    scaled_sigmoid_b2_norm_k2_2_to = scaled_sigmoid_b2_norm_k2_2 * tl.exp2(c_rest)
    rest_from_2 = tl.exp2(-c_rest)
    decay_2 = tl.exp2(c[:, None] - c[None, :]) * rest_from_2[None, :]
    minus_g10 = tl.where(related & (node[:, None] > node[None, :]),
        -scaled_sigmoid_b2_norm_k2_2_to[:, None] * decay_2 * norm_k1[None, :] * gram_k2_k1,
        tl.where((node[None, :] == node[:, None]) & related, -scaled_b2[:, None], 0.0))
    minus_g10_top = ((minus_g10.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g10_hi = minus_g10_top.to(tl.bfloat16)
    minus_g10_lo = (minus_g10 - minus_g10_top).to(tl.bfloat16)
    inverse_top = ((inverse.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    inverse_hi = inverse_top.to(tl.bfloat16)
    inverse_rest = inverse - inverse_top
    inverse_mid = (inverse_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    inverse_lo = inverse_mid.to(tl.bfloat16)
    inverse_last = (inverse_rest - inverse_mid).to(tl.bfloat16)
    minus_h10 = tl.dot(minus_g10_hi, inverse_last)
    minus_h10 = tl.dot(minus_g10_lo, inverse_lo, minus_h10)
    minus_h10 = tl.dot(minus_g10_hi, inverse_lo, minus_h10)
    minus_h10 = tl.dot(minus_g10_lo, inverse_hi, minus_h10)
    minus_h10 = tl.dot(minus_g10_hi, inverse_hi, minus_h10)
    minus_h10_top = ((minus_h10.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_h10_hi = minus_h10_top.to(tl.bfloat16)
    minus_h10_lo = (minus_h10 - minus_h10_top).to(tl.bfloat16)
    minus_g11 = tl.where(related & (node[:, None] > node[None, :]),
        -scaled_sigmoid_b2_norm_k2_2_to[:, None] * decay_2 * norm_k2[None, :] * gram_k2_k2, 0.0)
    minus_g11 = tl.dot(minus_h10_hi, minus_g01_lo, minus_g11)
    minus_g11 = tl.dot(minus_h10_lo, minus_g01_hi, minus_g11)
    minus_g11 = tl.dot(minus_h10_hi, minus_g01_hi, minus_g11)
    # (I+G)^-1, rough: I + Z, Z <- -G - Z G in bfloat16
    minus_g11_top = ((minus_g11.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g11_hi = minus_g11_top.to(tl.bfloat16)
    inverse1_rough = minus_g11_hi
    inverse1_rough = tl.dot(inverse1_rough, minus_g11_hi, minus_g11).to(tl.bfloat16)
    inverse1_rough = tl.dot(inverse1_rough, minus_g11_hi, minus_g11).to(tl.bfloat16)
    inverse1_whole = tl.dot(inverse1_rough, minus_g11_hi, minus_g11)
    inverse1_whole_top = ((inverse1_whole.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    inverse1_whole_hi = inverse1_whole_top.to(tl.bfloat16)
    # what is missing: E = -G - Z - G Z, and E + E^2
    minus_g11_top = ((minus_g11.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    minus_g11_hi = minus_g11_top.to(tl.bfloat16)
    minus_g11_rest = minus_g11 - minus_g11_top
    minus_g11_mid = (minus_g11_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    minus_g11_lo = minus_g11_mid.to(tl.bfloat16)
    minus_g11_last = (minus_g11_rest - minus_g11_mid).to(tl.bfloat16)
    inverse1_residual = minus_g11 - inverse1_whole_top
    inverse1_residual = tl.dot(minus_g11_last, inverse1_whole_hi, inverse1_residual)
    inverse1_residual = tl.dot(minus_g11_lo, inverse1_whole_hi, inverse1_residual)
    inverse1_residual = tl.dot(minus_g11_hi, inverse1_whole_hi, inverse1_residual)
    inverse1_residual_16 = inverse1_residual.to(tl.bfloat16)
    inverse1_correction = tl.dot(inverse1_residual_16, inverse1_residual_16, inverse1_residual)
    identity = tl.where(node[None, :] == node[:, None], 1.0, 0.0)
    inverse1 = identity + inverse1_whole_top + inverse1_correction
    inverse1_correction_top = ((inverse1_correction.to(tl.int32, bitcast=True) + 0x8000)
        & -0x10000).to(tl.float32, bitcast=True)
    inverse1_correction_hi = inverse1_correction_top.to(tl.bfloat16)
    inverse1_correction_lo = (inverse1_correction - inverse1_correction_top).to(tl.bfloat16)
    inverse1 = tl.dot(inverse1_whole_hi, inverse1_correction_lo, inverse1)
    inverse1 = tl.dot(inverse1_whole_hi, inverse1_correction_hi, inverse1)

    # C, and what each pair takes of it: F = C (I+G)^-1
    # row scalars once more, from memory: they would wait in registers
    tl.debug_barrier()
    rows_again = rows + (first + node)
    norm_k1 = tl.load(rows_again + (VALUE_HEADS + key_head) * capacity, mask=inside, other=0.0)
    norm_k2 = tl.load(rows_again + (4 * VALUE_HEADS + key_head) * capacity, mask=inside, other=0.0)
    norm_q = tl.load(rows_again + (5 * VALUE_HEADS + key_head) * capacity, mask=inside, other=0.0)
    c = tl.load(rows_again + (8 * VALUE_HEADS + head) * capacity, mask=inside, other=0.0)
    c_rest = tl.load(rows_again + (9 * VALUE_HEADS + head) * capacity, mask=inside, other=0.0)
    scaled_norm_q_2 = 0.125 * norm_q
    scaled_norm_q_2_to = scaled_norm_q_2 * tl.exp2(c_rest)
    rest_from_3 = tl.exp2(-c_rest)
    decay_3 = tl.exp2(c[:, None] - c[None, :]) * rest_from_3[None, :]
    readout = tl.where(related, scaled_norm_q_2_to[:, None] * decay_3 * norm_k1[None, :] * gram_q_k1, 0.0)
    readout_top = ((readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    readout_hi = readout_top.to(tl.bfloat16)
    readout_lo = (readout - readout_top).to(tl.bfloat16)
    inverse_top = ((inverse.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    inverse_hi = inverse_top.to(tl.bfloat16)
    inverse_rest = inverse - inverse_top
    inverse_mid = (inverse_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    inverse_lo = inverse_mid.to(tl.bfloat16)
    inverse_last = (inverse_rest - inverse_mid).to(tl.bfloat16)
    fold = tl.dot(readout_hi, inverse_last)
    fold = tl.dot(readout_lo, inverse_lo, fold)
    fold = tl.dot(readout_hi, inverse_lo, fold)
    fold = tl.dot(readout_lo, inverse_hi, fold)
    fold = tl.dot(readout_hi, inverse_hi, fold)
    fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold_hi = fold_top.to(tl.bfloat16)
    fold_lo = (fold - fold_top).to(tl.bfloat16)
    readout1 = tl.where(related, scaled_norm_q_2_to[:, None] * decay_3 * norm_k2[None, :] * gram_q_k2, 0.0)
    readout1 = tl.dot(fold_hi, minus_g01_lo, readout1)
    readout1 = tl.dot(fold_lo, minus_g01_hi, readout1)
    readout1 = tl.dot(fold_hi, minus_g01_hi, readout1)
    readout1_top = ((readout1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    readout1_hi = readout1_top.to(tl.bfloat16)
    readout1_lo = (readout1 - readout1_top).to(tl.bfloat16)
    inverse1_top = ((inverse1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    inverse1_hi = inverse1_top.to(tl.bfloat16)
    inverse1_rest = inverse1 - inverse1_top
    inverse1_mid = (inverse1_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    inverse1_lo = inverse1_mid.to(tl.bfloat16)
    inverse1_last = (inverse1_rest - inverse1_mid).to(tl.bfloat16)
    fold1 = tl.dot(readout1_hi, inverse1_last)
    fold1 = tl.dot(readout1_lo, inverse1_lo, fold1)
    fold1 = tl.dot(readout1_hi, inverse1_lo, fold1)
    fold1 = tl.dot(readout1_lo, inverse1_hi, fold1)
    fold1 = tl.dot(readout1_hi, inverse1_hi, fold1)
    fold1_top = ((fold1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold1_hi = fold1_top.to(tl.bfloat16)
    fold1_lo = (fold1 - fold1_top).to(tl.bfloat16)
    fold = tl.dot(fold1_hi, minus_h10_lo, fold)
    fold = tl.dot(fold1_lo, minus_h10_hi, fold)
    fold = tl.dot(fold1_hi, minus_h10_hi, fold)

    # store the folded tiles, piece by piece
    place = folded + program.to(tl.int64) * 4 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    fold_top = ((fold.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold_hi = fold_top.to(tl.bfloat16)
    fold_lo = (fold - fold_top).to(tl.bfloat16)
    fold1_top = ((fold1.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    fold1_hi = fold1_top.to(tl.bfloat16)
    fold1_lo = (fold1 - fold1_top).to(tl.bfloat16)
    tl.store(place + cell, fold_hi)
    tl.store(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell, fold_lo)
    tl.store(place + 2 * (NODE_BLOCK * NODE_BLOCK) + cell, fold1_hi)
    tl.store(place + 3 * (NODE_BLOCK * NODE_BLOCK) + cell, fold1_lo)


