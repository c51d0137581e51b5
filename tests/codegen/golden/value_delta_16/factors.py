@triton.jit
def factors(cu_nodes, vectors, folded, k, k_stride, rows, capacity, ancestors, depths, g, g_stride):
    """Walks up the paths: G, and the erase vectors times the decays of their paths."""
    program = tl.program_id(0)
    head = program % VALUE_HEADS
    request = program // VALUE_HEADS
    key_head = head
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    node = tl.arange(0, 16)
    inside = node < count
    key = tl.arange(0, 64)
    vector_rows = vectors + (request * VALUE_HEADS + head).to(tl.int64) * (192 * MAX_NODES)
    path_rows = folded + (request * VALUE_HEADS + head).to(tl.int64) * (2 * MAX_NODES * PATH)

    # what reads the state
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k_f32 = k_tile.to(tl.float32)
    # norm_k: <text>:3
    norm_k_at = rows + key_head * capacity + first
    norm_k = tl.load(norm_k_at + node, mask=inside, other=0.0)
    k_scaled = norm_k[:, None] * k_f32

    # every node walks up its path; what it reads has decayed by what it has passed
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~(1 << (node & 63).to(tl.int64))
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=-1), axis=0)
    node_reached = tl.where(inside, node, -1)
    c = tl.zeros([16, 64], tl.float32)
    c_rest = tl.zeros([16, 64], tl.float32)
    for step in range(0, deepest + 1):
        inside_reached = node_reached >= 0
        own = node_reached == node
        above = inside_reached & (node_reached != node)
        tl.store(path_rows + 1 * (MAX_NODES * PATH) + node * PATH + step - 1, node_reached.to(tl.float32),
            mask=above)
        k_tile_reached = tl.load(k_rows + (node_reached * k_step)[:, None] + key[None, :],
            mask=inside_reached[:, None], other=0.0)
        k_f32_reached = k_tile_reached.to(tl.float32)
        # norm_k: <text>:3
        norm_k_reached = tl.load(norm_k_at + node_reached, mask=inside_reached, other=0.0)
        k_scaled_reached = norm_k_reached[:, None] * k_f32_reached
        tl.store(path_rows + node * PATH + step - 1, tl.sum(k_scaled * k_scaled_reached, axis=1), mask=above)
        # log-decay g_local, and c its sum over the path: <text>:2
        g_rows = g + first * g_stride + head * D_V
        g_step = g_stride.to(tl.int32)
        g_full_reached = tl.load(g_rows + (node_reached * g_step)[:, None] + tl.arange(0, 64)[None, :],
            mask=inside_reached[:, None] & (tl.arange(0, 64) < D_V)[None, :], other=0.0).to(tl.float32)
        g_local = tl.where(inside_reached[:, None], g_full_reached * 1.4426950408889634, 0.0)
        g_local = tl.where(g_local < -4096.0, -4096.0, g_local)
        g_eighths = tl.floor(g_local * 8.0 + 0.5) * 0.125
        g_rest = g_local - g_eighths
        c = c + g_eighths
        c_rest = c_rest + g_rest
        highest_0 = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        node_reached = tl.where(left_0 != 0, highest_0, -1)
        bit = 1 << (tl.maximum(node_reached, 0) & 63).to(tl.int64)
        left_0 = left_0 & ~bit

    # what reads the committed state, times the decays of its path
    tl.store(vector_rows + (node * D_K)[:, None] + key[None, :], k_scaled, mask=inside[:, None])
    tl.store(vector_rows + 64 * MAX_NODES + (node * D_V)[:, None] + tl.arange(0, 64)[None, :], c,
        mask=inside[:, None])
    tl.store(vector_rows + 128 * MAX_NODES + (node * D_V)[:, None] + tl.arange(0, 64)[None, :], c_rest,
        mask=inside[:, None])


