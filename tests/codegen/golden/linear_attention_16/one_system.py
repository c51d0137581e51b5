@triton.jit
def one_system(program, cu_nodes, ancestors, q, q_stride, k, k_stride, rows, capacity, folded, signals):
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
    # guard_q: linear_attention.bole:7
    q_f32 = q_tile.to(tl.float32)
    guard_q = tl.where(inside, tl.sum(q_f32 * q_f32, axis=1), 0.0)
    # guard_k: linear_attention.bole:7
    k_f32 = k_tile.to(tl.float32)
    guard_k = tl.where(inside, tl.sum(k_f32 * k_f32, axis=1), 0.0)
    # nodes with an input that is not finite, as bits of a word
    finite = (tl.abs(guard_q) < 3.0e38) & (tl.abs(guard_k) < 3.0e38)
    bad = tl.sum(tl.where(finite, 0, 1).to(tl.int64) << (node & 63).to(tl.int64), axis=0)

    # for the value kernel: what multiplies rows, NaN below a non-finite input
    scale = tl.full([NODE_BLOCK], 0.125, tl.float32)
    poisoned = (word & bad) != 0
    out_row_at = rows + (3 * VALUE_HEADS + head) * capacity + first
    tl.store(out_row_at + node, tl.where(poisoned, float("nan"), scale), mask=inside)

    # pure writes: N - F M
    gram_q_k = tl.dot(q_tile, tl.trans(k_tile))
    path = tl.where((bad & (1 << (node & 63).to(tl.int64))) != 0, 0, word & ~bad)
    path_lo = path.to(tl.int32)
    related = (path_lo[:, None] & (1 << (node & 31))[None, :]) != 0
    write_readout = tl.where(related, scale[:, None] * gram_q_k, 0.0)

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


