@triton.jit
def one_preparation(
    program, cu_nodes, ancestors, q, q_stride, k, k_stride, g, g_stride, folded, rows, capacity, signals,
):
    """Walks up the paths of a few nodes, which leave their rows of the readout."""
    node_tile = program % 8
    head = program // 8 % KEY_HEADS
    request = program // 8 // KEY_HEADS
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    node = node_tile * 8 + tl.arange(0, 8)
    inside = node < count
    key = tl.arange(0, 128)

    # nodes above, as bits
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~(1 << (node & 63).to(tl.int64))
    node_reached = tl.where(inside, node, -1)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    g_rows = g + first * g_stride + key_head * D_K
    g_step = g_stride.to(tl.int32)
    g_tile = tl.load(g_rows + (node * g_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    place = folded + (request * KEY_HEADS + head).to(tl.int64) * (1 * (NODE_BLOCK * NODE_BLOCK) + 8192)

    # rows of N: zero, but for what comes behind the next barrier
    cell = (node * NODE_BLOCK)[:, None] + tl.arange(0, 64)[None, :]
    nothing = tl.zeros([8, 64], tl.float32)
    tl.store(place + cell, nothing, mask=inside[:, None])
    # the highest bit left is the next node; a float tells it
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up1 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up1, 0) & 63).to(tl.int64))
    inside_up1 = node_up1 >= 0
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up2 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up2, 0) & 63).to(tl.int64))
    inside_up2 = node_up2 >= 0
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up3 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up3, 0) & 63).to(tl.int64))
    inside_up3 = node_up3 >= 0
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up4 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up4, 0) & 63).to(tl.int64))
    inside_up4 = node_up4 >= 0
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up5 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up5, 0) & 63).to(tl.int64))
    inside_up5 = node_up5 >= 0
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up6 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up6, 0) & 63).to(tl.int64))
    inside_up6 = node_up6 >= 0
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up7 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up7, 0) & 63).to(tl.int64))
    inside_up7 = node_up7 >= 0
    highest = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_up8 = tl.where(left_0 != 0, highest, -1)
    left_0 = left_0 & ~(1 << (tl.maximum(node_up8, 0) & 63).to(tl.int64))
    inside_up8 = node_up8 >= 0
    g_tile_up1 = tl.load(g_rows + (node_up1 * g_step)[:, None] + key[None, :], mask=inside_up1[:, None],
        other=0.0)
    k_tile_up1 = tl.load(k_rows + (node_up1 * k_step)[:, None] + key[None, :], mask=inside_up1[:, None],
        other=0.0)
    g_tile_up2 = tl.load(g_rows + (node_up2 * g_step)[:, None] + key[None, :], mask=inside_up2[:, None],
        other=0.0)
    k_tile_up2 = tl.load(k_rows + (node_up2 * k_step)[:, None] + key[None, :], mask=inside_up2[:, None],
        other=0.0)
    g_tile_up3 = tl.load(g_rows + (node_up3 * g_step)[:, None] + key[None, :], mask=inside_up3[:, None],
        other=0.0)
    k_tile_up3 = tl.load(k_rows + (node_up3 * k_step)[:, None] + key[None, :], mask=inside_up3[:, None],
        other=0.0)
    g_tile_up4 = tl.load(g_rows + (node_up4 * g_step)[:, None] + key[None, :], mask=inside_up4[:, None],
        other=0.0)
    k_tile_up4 = tl.load(k_rows + (node_up4 * k_step)[:, None] + key[None, :], mask=inside_up4[:, None],
        other=0.0)
    g_tile_up5 = tl.load(g_rows + (node_up5 * g_step)[:, None] + key[None, :], mask=inside_up5[:, None],
        other=0.0)
    k_tile_up5 = tl.load(k_rows + (node_up5 * k_step)[:, None] + key[None, :], mask=inside_up5[:, None],
        other=0.0)
    g_tile_up6 = tl.load(g_rows + (node_up6 * g_step)[:, None] + key[None, :], mask=inside_up6[:, None],
        other=0.0)
    k_tile_up6 = tl.load(k_rows + (node_up6 * k_step)[:, None] + key[None, :], mask=inside_up6[:, None],
        other=0.0)
    g_tile_up7 = tl.load(g_rows + (node_up7 * g_step)[:, None] + key[None, :], mask=inside_up7[:, None],
        other=0.0)
    k_tile_up7 = tl.load(k_rows + (node_up7 * k_step)[:, None] + key[None, :], mask=inside_up7[:, None],
        other=0.0)
    g_tile_up8 = tl.load(g_rows + (node_up8 * g_step)[:, None] + key[None, :], mask=inside_up8[:, None],
        other=0.0)
    k_tile_up8 = tl.load(k_rows + (node_up8 * k_step)[:, None] + key[None, :], mask=inside_up8[:, None],
        other=0.0)
    # other threads have cleared the rows that products are stored in below
    tl.debug_barrier()

    # what multiplies outputs of the program's nodes, NaN where inputs are not finite
    # guard_q: gla.bole:7
    q_f32 = q_tile.to(tl.float32)
    guard_q = tl.where(inside, tl.sum(q_f32 * q_f32, axis=1), 0.0)
    # guard_k: gla.bole:7
    k_f32 = k_tile.to(tl.float32)
    guard_k = tl.where(inside, tl.sum(k_f32 * k_f32, axis=1), 0.0)
    # guard_g: gla.bole:7
    g_f32 = g_tile.to(tl.float32)
    guard_g = tl.where(inside, tl.sum(g_f32 * g_f32, axis=1), 0.0)
    rate = tl.where(inside, 1.4426950408889634, 0.0)[:, None]
    decay = tl.exp2(g_f32 * rate)
    gates_size = tl.sum(tl.abs(decay), axis=1)
    finite = ((tl.abs(guard_q) < 3.0e38) & (tl.abs(guard_k) < 3.0e38) & (tl.abs(guard_g) < 3.0e38)
        & (gates_size < 3.0e38))
    out_row_at = rows + (4 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(finite, 0.08838834764831843, float("nan")), mask=inside)

    # what nodes read of themselves, then their decay
    turn = tl.arange(0, 16)[None, :]
    path = tl.where(turn == 0, node_reached[:, None], -1)
    write_readout = tl.where(turn == 0, (tl.sum(q_f32 * k_f32, axis=1) * 0.08838834764831843)[:, None], 0.0)
    q_decayed = q_f32 * decay

    # 1 above: products, then its decay
    path = tl.where(turn == 1, node_up1[:, None], path)
    k_f32_up1 = k_tile_up1.to(tl.float32)
    walked_q_k_up1 = tl.sum(q_decayed * k_f32_up1, axis=1)
    write_readout = tl.where(turn == 1, (walked_q_k_up1 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up1 = g_tile_up1.to(tl.float32)
    rate = tl.where(inside_up1, 1.4426950408889634, 0.0)[:, None]
    decay_up1 = tl.exp2(g_f32_up1 * rate)
    q_decayed = q_decayed * decay_up1

    # 2 above: products, then its decay
    path = tl.where(turn == 2, node_up2[:, None], path)
    k_f32_up2 = k_tile_up2.to(tl.float32)
    walked_q_k_up2 = tl.sum(q_decayed * k_f32_up2, axis=1)
    write_readout = tl.where(turn == 2, (walked_q_k_up2 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up2 = g_tile_up2.to(tl.float32)
    rate = tl.where(inside_up2, 1.4426950408889634, 0.0)[:, None]
    decay_up2 = tl.exp2(g_f32_up2 * rate)
    q_decayed = q_decayed * decay_up2

    # 3 above: products, then its decay
    path = tl.where(turn == 3, node_up3[:, None], path)
    k_f32_up3 = k_tile_up3.to(tl.float32)
    walked_q_k_up3 = tl.sum(q_decayed * k_f32_up3, axis=1)
    write_readout = tl.where(turn == 3, (walked_q_k_up3 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up3 = g_tile_up3.to(tl.float32)
    rate = tl.where(inside_up3, 1.4426950408889634, 0.0)[:, None]
    decay_up3 = tl.exp2(g_f32_up3 * rate)
    q_decayed = q_decayed * decay_up3

    # 4 above: products, then its decay
    path = tl.where(turn == 4, node_up4[:, None], path)
    k_f32_up4 = k_tile_up4.to(tl.float32)
    walked_q_k_up4 = tl.sum(q_decayed * k_f32_up4, axis=1)
    write_readout = tl.where(turn == 4, (walked_q_k_up4 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up4 = g_tile_up4.to(tl.float32)
    rate = tl.where(inside_up4, 1.4426950408889634, 0.0)[:, None]
    decay_up4 = tl.exp2(g_f32_up4 * rate)
    q_decayed = q_decayed * decay_up4

    # 5 above: products, then its decay
    path = tl.where(turn == 5, node_up5[:, None], path)
    k_f32_up5 = k_tile_up5.to(tl.float32)
    walked_q_k_up5 = tl.sum(q_decayed * k_f32_up5, axis=1)
    write_readout = tl.where(turn == 5, (walked_q_k_up5 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up5 = g_tile_up5.to(tl.float32)
    rate = tl.where(inside_up5, 1.4426950408889634, 0.0)[:, None]
    decay_up5 = tl.exp2(g_f32_up5 * rate)
    q_decayed = q_decayed * decay_up5

    # 6 above: products, then its decay
    path = tl.where(turn == 6, node_up6[:, None], path)
    k_f32_up6 = k_tile_up6.to(tl.float32)
    walked_q_k_up6 = tl.sum(q_decayed * k_f32_up6, axis=1)
    write_readout = tl.where(turn == 6, (walked_q_k_up6 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up6 = g_tile_up6.to(tl.float32)
    rate = tl.where(inside_up6, 1.4426950408889634, 0.0)[:, None]
    decay_up6 = tl.exp2(g_f32_up6 * rate)
    q_decayed = q_decayed * decay_up6

    # 7 above: products, then its decay
    path = tl.where(turn == 7, node_up7[:, None], path)
    k_f32_up7 = k_tile_up7.to(tl.float32)
    walked_q_k_up7 = tl.sum(q_decayed * k_f32_up7, axis=1)
    write_readout = tl.where(turn == 7, (walked_q_k_up7 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up7 = g_tile_up7.to(tl.float32)
    rate = tl.where(inside_up7, 1.4426950408889634, 0.0)[:, None]
    decay_up7 = tl.exp2(g_f32_up7 * rate)
    q_decayed = q_decayed * decay_up7

    # 8 above: products, then its decay
    path = tl.where(turn == 8, node_up8[:, None], path)
    k_f32_up8 = k_tile_up8.to(tl.float32)
    walked_q_k_up8 = tl.sum(q_decayed * k_f32_up8, axis=1)
    write_readout = tl.where(turn == 8, (walked_q_k_up8 * 0.08838834764831843)[:, None], write_readout)
    g_f32_up8 = g_tile_up8.to(tl.float32)
    rate = tl.where(inside_up8, 1.4426950408889634, 0.0)[:, None]
    decay_up8 = tl.exp2(g_f32_up8 * rate)
    q_decayed = q_decayed * decay_up8

    # products, each in the column of its node
    entry = (node * NODE_BLOCK)[:, None] + path
    write_readout_top = ((write_readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    write_readout_hi = write_readout_top.to(tl.bfloat16)
    write_readout_lo = (write_readout - write_readout_top).to(tl.bfloat16)
    write_readout_word = (write_readout_top.to(tl.int32, bitcast=True)
        | (write_readout_lo.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF)).to(tl.float32, bitcast=True)
    tl.store(place + entry, write_readout_word, mask=path >= 0)

    # what reads the state, times the decays of its path
    q_decayed_top = ((q_decayed.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    q_decayed_hi = q_decayed_top.to(tl.bfloat16)
    q_decayed_lo = (q_decayed - q_decayed_top).to(tl.bfloat16)
    q_decayed_word = (q_decayed_top.to(tl.int32, bitcast=True)
        | (q_decayed_lo.to(tl.int16, bitcast=True).to(tl.int32) & 0xFFFF)).to(tl.float32, bitcast=True)
    tl.store(place + 4096 + (node * 128)[:, None] + key[None, :], q_decayed_word, mask=inside[:, None])

    # all threads have stored: one program less that value programs of the head wait for
    tl.debug_barrier()
    tl.atomic_add(signals + (request * KEY_HEADS + head) * (1 + GROUP * VALUE_TILES), 1, sem="release")


