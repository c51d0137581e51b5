@triton.jit
def factors(cu_nodes, products, capacity, decayed, rows, depths, k, k_stride, q, q_stride):
    """Once per head: walks up the paths, products of vectors with the decays in between."""
    tl.extra.cuda.gdc_wait()
    # after the wait: a program that starts early knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    head = program % VALUE_HEADS
    block = program // VALUE_HEADS % NODE_BLOCKS
    request = program // (VALUE_HEADS * NODE_BLOCKS)
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key_c0 = tl.arange(0, B_K)
    key_c1 = 32 + tl.arange(0, B_K)
    node = block * NODE_BLOCK + tl.arange(0, NODE_BLOCK)
    inside = node < count

    # every node walks up its path; what it reads is multiplied by what it has passed
    k_k_rows = products + (head * capacity + first) * COLUMNS
    q_k_rows = products + ((VALUE_HEADS + head) * capacity + first) * COLUMNS
    decayed_0_rows = decayed + (head * capacity + first) * D_K
    decayed_1_rows = decayed + ((VALUE_HEADS + head) * capacity + first) * D_K
    decayed_2_rows = decayed + ((2 * VALUE_HEADS + head) * capacity + first) * D_K
    parent_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=0), axis=0)
    channel = tl.arange(0, 64)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile_walk = tl.load(k_rows + (node * k_step)[:, None] + channel[None, :], mask=inside[:, None],
        other=0.0)
    k_f32_walk = k_tile_walk.to(tl.float32)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
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
        tl.store(k_k_rows + column, tl.sum(k_f32_walk * k_decayed, axis=1), mask=on_path)
        tl.store(q_k_rows + column, tl.sum(q_f32_walk * k_decayed, axis=1), mask=on_path)
        gates_reached = tl.load(decayed_2_rows + (reached * D_K)[:, None] + channel[None, :],
            mask=on_path[:, None], other=1.0)
        passed = passed * gates_reached
        reached = parent
    # what reads the state, times the decays of its path
    tl.store(decayed_0_rows + (node * D_K)[:, None] + channel[None, :], passed * k_f32_walk,
        mask=inside[:, None])
    tl.store(decayed_1_rows + (node * D_K)[:, None] + channel[None, :], passed * q_f32_walk,
        mask=inside[:, None])


