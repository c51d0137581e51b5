@triton.jit
def one_system(
    program, cu_nodes, ancestors, A_log, dt_bias, D, dt, dt_stride, C, C_stride, B, B_stride, rows, capacity,
    folded, signals,
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
    D_head_2 = tl.load(D + head)
    dt_rows = dt + first * dt_stride + head
    dt_step = dt_stride.to(tl.int32)
    dt_row = tl.load(dt_rows + node * dt_step, mask=inside, other=0.0).to(tl.float32)
    C_rows = C + first * C_stride + key_head * D_K
    C_step = C_stride.to(tl.int32)
    C_tile = tl.load(C_rows + (node * C_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    B_rows = B + first * B_stride + key_head * D_K
    B_step = B_stride.to(tl.int32)
    B_tile = tl.load(B_rows + (node * B_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)

    # row scalars of the head: stored and read back, not computed for every column
    # delta: mamba2.bole:9
    softplus_argument = dt_row + dt_bias_head
    softplus_part = tl.exp2(tl.abs(softplus_argument) * -1.4426950408889634)
    delta = tl.where(inside, tl.maximum(softplus_argument, 0.0) + softplus_part
        * (0.99999994 + softplus_part
        * (-0.49999493 + softplus_part
        * (0.33319086 + softplus_part
        * (-0.24842922 + softplus_part
        * (0.19105825 + softplus_part
        * (-0.13662934 + softplus_part
        * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))), 0.0)
    delta_at = rows + head * capacity + first
    tl.store(delta_at + node, delta, mask=inside)
    # D_head: mamba2.bole:8
    D_head = tl.where(inside, tl.load(D + head), 0.0)
    D_head_at = rows + (VALUE_HEADS + head) * capacity + first
    tl.store(D_head_at + node, D_head, mask=inside)
    # guard_C: mamba2.bole:8
    C_f32 = C_tile.to(tl.float32)
    guard_C = tl.where(inside, tl.sum(C_f32 * C_f32, axis=1), 0.0)
    guard_C_at = rows + (2 * VALUE_HEADS + key_head) * capacity + first
    tl.store(guard_C_at + node, guard_C, mask=inside)
    # guard_B: mamba2.bole:8
    B_f32 = B_tile.to(tl.float32)
    guard_B = tl.where(inside, tl.sum(B_f32 * B_f32, axis=1), 0.0)
    guard_B_at = rows + (3 * VALUE_HEADS + key_head) * capacity + first
    tl.store(guard_B_at + node, guard_B, mask=inside)
    c_at = rows + (5 * VALUE_HEADS + head) * capacity + first
    c_rest_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    g_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    # log-decay g, and c its sum over the path: mamba2.bole:10
    exp_A_log = tl.exp(A_log_head)
    g = tl.where(inside, -(exp_A_log * delta), 0.0) * 1.4426950408889634
    g = tl.where(g < -4096.0, -4096.0, g)
    tl.store(g_at + node, g, mask=inside)
    tl.debug_barrier()
    left = word
    c = tl.zeros([NODE_BLOCK], tl.float32)
    c_rest = tl.zeros([NODE_BLOCK], tl.float32)
    for _ in tl.static_range(5):
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
    # delta: mamba2.bole:9
    delta = tl.load(delta_at + node, mask=inside, other=0.0)
    # D_head: mamba2.bole:8
    D_head = tl.load(D_head_at + node, mask=inside, other=0.0)
    # guard_C: mamba2.bole:8
    guard_C = tl.load(guard_C_at + node, mask=inside, other=0.0)
    # guard_B: mamba2.bole:8
    guard_B = tl.load(guard_B_at + node, mask=inside, other=0.0)
    # log-decay g, and c its sum over the path: mamba2.bole:10
    c = tl.load(c_at + node, mask=inside, other=0.0)
    c_rest = tl.load(c_rest_at + node, mask=inside, other=0.0)
    g = tl.load(g_at + node, mask=inside, other=0.0)
    # nodes with an input that is not finite, as bits of a word
    finite = ((tl.abs(delta) < 3.0e38) & (tl.abs(D_head) < 3.0e38) & (tl.abs(guard_C) < 3.0e38)
        & (tl.abs(guard_B) < 3.0e38) & (tl.abs(c) < 3.0e38))
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    poisoned = (word & bad) != 0
    out_row_at = rows + (8 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), tl.exp2(c + c_rest)), mask=inside)
    delta_at_2 = rows + (9 * VALUE_HEADS + head) * capacity + first
    tl.store(delta_at_2 + node, delta, mask=inside)
    D_head_at_2 = rows + (10 * VALUE_HEADS + head) * capacity + first
    tl.store(D_head_at_2 + node, D_head, mask=inside)

    # pure writes: N - F M
    rest_to = tl.exp2(c_rest)
    gram_C_B = tl.dot(C_tile, tl.trans(B_tile))
    rest_from = tl.exp2(-c_rest)
    decay = tl.exp2(c[:, None] - c[None, :]) * rest_from[None, :]
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    write_readout = tl.where(related, rest_to[:, None] * decay * gram_C_B, 0.0)

    # store the folded tiles, piece by piece
    place = folded + program.to(tl.int64) * 2 * (NODE_BLOCK * NODE_BLOCK)
    cell = tl.arange(0, NODE_BLOCK)[:, None] * NODE_BLOCK + tl.arange(0, NODE_BLOCK)[None, :]
    write_readout_top = ((write_readout.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
        bitcast=True)
    write_readout_hi = write_readout_top.to(tl.bfloat16)
    write_readout_lo = (write_readout - write_readout_top).to(tl.bfloat16)
    tl.store(place + cell, write_readout_hi)
    tl.store(place + 1 * (NODE_BLOCK * NODE_BLOCK) + cell, write_readout_lo)

    # all threads have stored: let the value programs of the head go on
    tl.debug_barrier()
    tl.atomic_add(signals + program * (1 + VALUE_TILES), 1, sem="release")


