@triton.jit
def factors(cu_nodes, vectors, folded, v, v_stride, rows, capacity, ancestors, depths, g, g_stride):
    """Walks up the paths: G, and the erase vectors times the decays of their paths."""
    program = tl.program_id(0)
    node_tile = program % 4
    head = program // 4 % VALUE_HEADS
    request = program // 4 // VALUE_HEADS
    key_head = head // GROUP
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    node = node_tile * 16 + tl.arange(0, 16)
    inside = node < count
    key = tl.arange(0, 128)
    vector_rows = vectors + (request * VALUE_HEADS + head).to(tl.int64) * (96 * MAX_NODES)
    path_rows = folded + (request * VALUE_HEADS + head).to(tl.int64) * (2 * MAX_NODES * PATH)

    # what reads the state
    v_rows = v + first * v_stride + head * D_V
    v_step = v_stride.to(tl.int32)
    v_full = tl.load(v_rows + (node * v_step)[:, None] + tl.arange(0, 128)[None, :],
        mask=inside[:, None] & (tl.arange(0, 128) < D_V)[None, :], other=0.0).to(tl.float32)
    # beta: gated_oja.bole:12
    beta_at = rows + (VALUE_HEADS + head) * capacity + first
    beta = tl.load(beta_at + node, mask=inside, other=0.0)
    v_scaled = beta[:, None] * v_full

    # every node walks up its path; what it reads has decayed by what it has passed
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~(1 << (node & 63).to(tl.int64))
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=-1), axis=0)
    node_reached = tl.where(inside, node, -1)
    passed = tl.full([16, 128], 1.0, tl.float32)
    for step in range(0, deepest + 1):
        inside_reached = node_reached >= 0
        own = node_reached == node
        above = inside_reached & (node_reached != node)
        tl.store(path_rows + 1 * (MAX_NODES * PATH) + node * PATH + step - 1, node_reached.to(tl.float32),
            mask=above)
        v_full_reached = tl.load(v_rows + (node_reached * v_step)[:, None] + tl.arange(0, 128)[None, :],
            mask=inside_reached[:, None] & (tl.arange(0, 128) < D_V)[None, :], other=0.0).to(tl.float32)
        tl.store(path_rows + node * PATH + step - 1, tl.sum(passed * v_scaled * v_full_reached, axis=1),
            mask=above)
        # decay: gated_oja.bole:13
        g_rows = g + first * g_stride + head * D_V
        g_step = g_stride.to(tl.int32)
        g_full_reached = tl.load(g_rows + (node_reached * g_step)[:, None] + tl.arange(0, 128)[None, :],
            mask=inside_reached[:, None] & (tl.arange(0, 128) < D_V)[None, :], other=0.0).to(tl.float32)
        g_full_reached_2 = precise_exp(g_full_reached)
        g_live_reached = tl.where((tl.arange(0, 128) < D_V)[None, :], g_full_reached_2, 0.0)
        decay_reached = tl.where(inside_reached[:, None] & (tl.arange(0, 128) < D_V)[None, :],
            g_live_reached, 1.0)
        passed = passed * decay_reached
        highest_0 = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        node_reached = tl.where(left_0 != 0, highest_0, -1)
        bit = 1 << (tl.maximum(node_reached, 0) & 63).to(tl.int64)
        left_0 = left_0 & ~bit

    # what reads the committed state, times the decays of its path
    tl.store(vector_rows + (node * D_V)[:, None] + tl.arange(0, 128)[None, :], passed * v_scaled,
        mask=inside[:, None] & (tl.arange(0, 128) < D_V)[None, :])


