@triton.jit
def factors(
    cu_nodes, ancestors, q, q_stride, k, k_stride, g, g_stride, rows, capacity, decayed, products, depths,
    folded,
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
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile_c0 = tl.load(q_rows + (node * q_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    q_tile_c1 = tl.load(q_rows + (node * q_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile_c0 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    k_tile_c1 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    g_rows = g + first * g_stride + key_head * D_K
    g_step = g_stride.to(tl.int32)
    g_tile_c0 = tl.load(g_rows + (node * g_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    g_tile_c1 = tl.load(g_rows + (node * g_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    # guard_q: gla.bole:7
    q_f32_c0 = q_tile_c0.to(tl.float32)
    q_f32_c1 = q_tile_c1.to(tl.float32)
    guard_q = tl.where(inside, tl.sum(q_f32_c0 * q_f32_c0, axis=1) + tl.sum(q_f32_c1 * q_f32_c1, axis=1), 0.0)
    # guard_k: gla.bole:7
    k_f32_c0 = k_tile_c0.to(tl.float32)
    k_f32_c1 = k_tile_c1.to(tl.float32)
    guard_k = tl.where(inside, tl.sum(k_f32_c0 * k_f32_c0, axis=1) + tl.sum(k_f32_c1 * k_f32_c1, axis=1), 0.0)
    # guard_g: gla.bole:7
    g_f32_c0 = g_tile_c0.to(tl.float32)
    g_f32_c1 = g_tile_c1.to(tl.float32)
    guard_g = tl.where(inside, tl.sum(g_f32_c0 * g_f32_c0, axis=1) + tl.sum(g_f32_c1 * g_f32_c1, axis=1), 0.0)
    # decay: gla.bole:9
    scaled_g_c0 = tl.exp(g_f32_c0)
    gates_c0 = tl.where(inside[:, None], scaled_g_c0, 1.0)
    scaled_g_c1 = tl.exp(g_f32_c1)
    gates_c1 = tl.where(inside[:, None], scaled_g_c1, 1.0)
    gates_size = tl.sum(tl.abs(gates_c0), axis=1) + tl.sum(tl.abs(gates_c1), axis=1)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(guard_q) < 3.0e38) & (tl.abs(guard_k) < 3.0e38) & (tl.abs(guard_g) < 3.0e38)
        & (tl.abs(gates_size) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    scale = tl.full([NODE_BLOCK], 0.125, tl.float32)
    poisoned = (word & bad) != 0
    out_row_at = rows + (5 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), scale), mask=inside)

    # for the walks: parents, decays, other vectors that are no inputs
    # without the bit below the highest, rounding to a float keeps the exponent
    own = 1 << (node & 63).to(tl.int64)
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~own
    parent = tl.where(left_0 != 0, ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32,
        bitcast=True) >> 23) - 127, -1)
    parent_at = rows + (4 * VALUE_HEADS + head) * capacity + first
    tl.store(parent_at + node, parent.to(tl.float32), mask=inside)
    decayed_1_rows = decayed + ((VALUE_HEADS + head) * capacity + first) * D_K
    tl.store(decayed_1_rows + (node * D_K)[:, None] + key_c0[None, :],
        tl.where(finite[:, None], gates_c0, 1.0), mask=inside[:, None])
    tl.store(decayed_1_rows + (node * D_K)[:, None] + key_c1[None, :],
        tl.where(finite[:, None], gates_c1, 1.0), mask=inside[:, None])
    # rows that other threads have stored are read below
    tl.debug_barrier()

    # every node walks up its path; what it reads is multiplied by what it has passed
    q_k_rows = products + (head * capacity + first) * COLUMNS
    decayed_0_rows = decayed + (head * capacity + first) * D_K
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=0), axis=0)
    channel = tl.arange(0, 64)
    q_tile_walk = tl.load(q_rows + (node * q_step)[:, None] + channel[None, :], mask=inside[:, None],
        other=0.0)
    q_f32_walk = q_tile_walk.to(tl.float32)
    reached = tl.where(inside, node, -1)
    passed = tl.full([NODE_BLOCK, 64], 1.0, tl.float32)
    for _ in range(0, deepest + 1):
        on_path = reached >= 0
        parent = tl.load(parent_at + reached, mask=on_path, other=-1.0).to(tl.int32)
        column = node * COLUMNS + reached
        k_reached = tl.load(k_rows + (reached * k_step)[:, None] + channel[None, :], mask=on_path[:, None],
            other=0.0).to(tl.float32)
        k_decayed = passed * k_reached
        tl.store(q_k_rows + column, tl.sum(q_f32_walk * k_decayed, axis=1), mask=on_path)
        gates_reached = tl.load(decayed_1_rows + (reached * D_K)[:, None] + channel[None, :],
            mask=on_path[:, None], other=1.0)
        passed = passed * gates_reached
        reached = parent
    # what reads the state, times the decays of its path
    tl.store(decayed_0_rows + (node * D_K)[:, None] + channel[None, :], passed * q_f32_walk,
        mask=inside[:, None])
    # products that other threads have stored are read below
    tl.debug_barrier()

    # pure writes: N - F M
    walked_q_k = tl.where(node[:, None] >= node[None, :],
        tl.load(q_k_rows + (node * COLUMNS)[:, None] + node[None, :], mask=inside[:, None], other=0.0), 0.0)
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    write_readout = tl.where(related, scale[:, None] * walked_q_k, 0.0)

    # store the folded tiles, piece by piece
    place = folded + program.to(tl.int64) * 2 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    write_readout_top = ((write_readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    write_readout_hi = write_readout_top.to(tl.bfloat16)
    write_readout_lo = (write_readout - write_readout_top).to(tl.bfloat16)
    tl.store(place + cell, write_readout_hi)
    tl.store(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_lo)


