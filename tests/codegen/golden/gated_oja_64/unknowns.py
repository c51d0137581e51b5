@triton.jit
def unknowns(
    cu_nodes, vectors, slots, state, state_stride, rows, capacity, k, k_stride, unknowns, folded, depths,
):
    """A tile of the unknowns' channels per program: the system of the tree, node after node."""
    program = tl.program_id(0)
    channel_tile = program % 2
    head = program // 2 % VALUE_HEADS
    request = program // 2 // VALUE_HEADS
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    key_head = head // GROUP
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    key = channel_tile * B_K + tl.arange(0, B_K)
    vector_rows = vectors + (request * VALUE_HEADS + head).to(tl.int64) * (96 * MAX_NODES)
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + head * (D_V * D_K)

    # right sides: R = r - e^T S_pre
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    channel = tl.arange(0, 32)
    state_tile = tl.load(state_rows + (channel * D_K)[:, None] + key[None, :])
    state_tile_hi = state_tile.to(tl.bfloat16)
    state_tile_top = state_tile_hi.to(tl.float32)
    state_tile_rest = state_tile - state_tile_top
    state_tile_mid = (state_tile_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    state_tile_lo = state_tile_mid.to(tl.bfloat16)
    state_tile_last = (state_tile_rest - state_tile_mid).to(tl.bfloat16)
    erase = tl.load(vector_rows + (node * D_V)[:, None] + channel[None, :], mask=inside[:, None], other=0.0)
    erase_hi = erase.to(tl.bfloat16)
    erase_top = erase_hi.to(tl.float32)
    erase_rest = erase - erase_top
    erase_mid = (erase_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    erase_lo = erase_mid.to(tl.bfloat16)
    erase_last = (erase_rest - erase_mid).to(tl.bfloat16)
    erased = tl.dot(erase_hi, state_tile_last)
    erased = tl.dot(erase_lo, state_tile_lo, erased)
    erased = tl.dot(erase_last, state_tile_hi, erased)
    erased = tl.dot(erase_hi, state_tile_lo, erased)
    erased = tl.dot(erase_lo, state_tile_hi, erased)
    erased = tl.dot(erase_hi, state_tile_hi, erased)
    channel = 32 + tl.arange(0, 32)
    state_tile = tl.load(state_rows + (channel * D_K)[:, None] + key[None, :])
    state_tile_hi = state_tile.to(tl.bfloat16)
    state_tile_top = state_tile_hi.to(tl.float32)
    state_tile_rest = state_tile - state_tile_top
    state_tile_mid = (state_tile_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    state_tile_lo = state_tile_mid.to(tl.bfloat16)
    state_tile_last = (state_tile_rest - state_tile_mid).to(tl.bfloat16)
    erase = tl.load(vector_rows + (node * D_V)[:, None] + channel[None, :], mask=inside[:, None], other=0.0)
    erase_hi = erase.to(tl.bfloat16)
    erase_top = erase_hi.to(tl.float32)
    erase_rest = erase - erase_top
    erase_mid = (erase_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    erase_lo = erase_mid.to(tl.bfloat16)
    erase_last = (erase_rest - erase_mid).to(tl.bfloat16)
    erased = tl.dot(erase_hi, state_tile_last, erased)
    erased = tl.dot(erase_lo, state_tile_lo, erased)
    erased = tl.dot(erase_last, state_tile_hi, erased)
    erased = tl.dot(erase_hi, state_tile_lo, erased)
    erased = tl.dot(erase_lo, state_tile_hi, erased)
    erased = tl.dot(erase_hi, state_tile_hi, erased)
    channel = 64 + tl.arange(0, 32)
    state_tile = tl.load(state_rows + (channel * D_K)[:, None] + key[None, :])
    state_tile_hi = state_tile.to(tl.bfloat16)
    state_tile_top = state_tile_hi.to(tl.float32)
    state_tile_rest = state_tile - state_tile_top
    state_tile_mid = (state_tile_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    state_tile_lo = state_tile_mid.to(tl.bfloat16)
    state_tile_last = (state_tile_rest - state_tile_mid).to(tl.bfloat16)
    erase = tl.load(vector_rows + (node * D_V)[:, None] + channel[None, :], mask=inside[:, None], other=0.0)
    erase_hi = erase.to(tl.bfloat16)
    erase_top = erase_hi.to(tl.float32)
    erase_rest = erase - erase_top
    erase_mid = (erase_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    erase_lo = erase_mid.to(tl.bfloat16)
    erase_last = (erase_rest - erase_mid).to(tl.bfloat16)
    erased = tl.dot(erase_hi, state_tile_last, erased)
    erased = tl.dot(erase_lo, state_tile_lo, erased)
    erased = tl.dot(erase_last, state_tile_hi, erased)
    erased = tl.dot(erase_hi, state_tile_lo, erased)
    erased = tl.dot(erase_lo, state_tile_hi, erased)
    erased = tl.dot(erase_hi, state_tile_hi, erased)
    # u: gated_oja.bole:14
    # beta: gated_oja.bole:12
    beta_at = rows + (VALUE_HEADS + head) * capacity + first
    beta = tl.load(beta_at + node, mask=inside, other=0.0)
    # norm_k: gated_oja.bole:11
    norm_k_at = rows + key_head * capacity + first
    norm_k = tl.load(norm_k_at + node, mask=inside, other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k_f32 = k_tile.to(tl.float32)
    scaled_k = norm_k[:, None] * k_f32
    scaled_k_2 = beta[:, None] * scaled_k
    tl.store((unknowns + (first + node) * (VALUE_HEADS * D_K) + head * D_K)[:, None] + key[None, :],
        scaled_k_2 - erased, mask=inside[:, None])
    path_rows = folded + (request * VALUE_HEADS + head).to(tl.int64) * (2 * MAX_NODES * PATH)

    # node after node: unknowns of ancestors are there when a node's turn comes
    tl.debug_barrier()
    for j in range(0, count):
        node_now = j + tl.arange(0, 1)
        inside_now = node_now < count
        length = tl.load(depths + first + j)
        step = tl.arange(0, 16)
        inside_source = step < length
        node_source = tl.load(path_rows + 1 * (MAX_NODES * PATH) + j * PATH + step, mask=inside_source,
            other=0.0).to(tl.int32)
        u_source = tl.load((unknowns + (first + node_source) * (VALUE_HEADS * D_K) + head * D_K)[:, None]
            + key[None, :], mask=inside_source[:, None], other=0.0)
        g = tl.load(path_rows + j * PATH + step, mask=inside_source, other=0.0)
        seen = tl.sum(g[:, None] * u_source, axis=0, keep_dims=True)
        u = (tl.load((unknowns + (first + node_now) * (VALUE_HEADS * D_K) + head * D_K)[:, None]
            + key[None, :], mask=inside_now[:, None], other=0.0) - seen)
        tl.store((unknowns + (first + node_now) * (VALUE_HEADS * D_K) + head * D_K)[:, None] + key[None, :],
            u, mask=inside_now[:, None])
        tl.debug_barrier()


