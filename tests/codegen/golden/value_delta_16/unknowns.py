@triton.jit
def unknowns(
    cu_nodes, vectors, slots, state, state_stride, b, b_stride, v, v_stride, capacity, unknowns, folded,
    depths,
):
    """A tile of the unknowns' channels per program: the system of the tree, node after node."""
    program = tl.program_id(0)
    channel_tile = program % 2
    head = program // 2 % VALUE_HEADS
    request = program // 2 // VALUE_HEADS
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    value = channel_tile * B_V + tl.arange(0, B_V)
    vector_rows = vectors + (request * VALUE_HEADS + head).to(tl.int64) * (192 * MAX_NODES)
    slot = tl.load(slots + request)
    state_rows = state + tl.maximum(slot, 0).to(tl.int64) * state_stride + head * (D_V * D_K)

    # right sides: R = r - e^T S_pre
    node = tl.arange(0, NODE_BLOCK)
    inside = node < count
    c = tl.load(vector_rows + 64 * MAX_NODES + (node * D_V)[:, None] + value[None, :], mask=inside[:, None],
        other=0.0)
    c_rest = tl.load(vector_rows + 128 * MAX_NODES + (node * D_V)[:, None] + value[None, :],
        mask=inside[:, None], other=0.0)
    channel = tl.arange(0, 32)
    state_tile = tl.load(state_rows + (value * D_K)[:, None] + channel[None, :])
    state_tile_hi = state_tile.to(tl.bfloat16)
    state_tile_top = state_tile_hi.to(tl.float32)
    state_tile_rest = state_tile - state_tile_top
    state_tile_mid = (state_tile_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    state_tile_lo = state_tile_mid.to(tl.bfloat16)
    state_tile_last = (state_tile_rest - state_tile_mid).to(tl.bfloat16)
    erase = tl.load(vector_rows + (node * D_K)[:, None] + channel[None, :], mask=inside[:, None], other=0.0)
    erase_hi = erase.to(tl.bfloat16)
    erase_top = erase_hi.to(tl.float32)
    erase_rest = erase - erase_top
    erase_mid = (erase_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    erase_lo = erase_mid.to(tl.bfloat16)
    erase_last = (erase_rest - erase_mid).to(tl.bfloat16)
    erased = tl.dot(erase_hi, tl.trans(state_tile_last))
    erased = tl.dot(erase_lo, tl.trans(state_tile_lo), erased)
    erased = tl.dot(erase_last, tl.trans(state_tile_hi), erased)
    erased = tl.dot(erase_hi, tl.trans(state_tile_lo), erased)
    erased = tl.dot(erase_lo, tl.trans(state_tile_hi), erased)
    erased = tl.dot(erase_hi, tl.trans(state_tile_hi), erased)
    channel = 32 + tl.arange(0, 32)
    state_tile = tl.load(state_rows + (value * D_K)[:, None] + channel[None, :])
    state_tile_hi = state_tile.to(tl.bfloat16)
    state_tile_top = state_tile_hi.to(tl.float32)
    state_tile_rest = state_tile - state_tile_top
    state_tile_mid = (state_tile_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    state_tile_lo = state_tile_mid.to(tl.bfloat16)
    state_tile_last = (state_tile_rest - state_tile_mid).to(tl.bfloat16)
    erase = tl.load(vector_rows + (node * D_K)[:, None] + channel[None, :], mask=inside[:, None], other=0.0)
    erase_hi = erase.to(tl.bfloat16)
    erase_top = erase_hi.to(tl.float32)
    erase_rest = erase - erase_top
    erase_mid = (erase_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
    erase_lo = erase_mid.to(tl.bfloat16)
    erase_last = (erase_rest - erase_mid).to(tl.bfloat16)
    erased = tl.dot(erase_hi, tl.trans(state_tile_last), erased)
    erased = tl.dot(erase_lo, tl.trans(state_tile_lo), erased)
    erased = tl.dot(erase_last, tl.trans(state_tile_hi), erased)
    erased = tl.dot(erase_hi, tl.trans(state_tile_lo), erased)
    erased = tl.dot(erase_lo, tl.trans(state_tile_hi), erased)
    erased = tl.dot(erase_hi, tl.trans(state_tile_hi), erased)
    # u: <text>:5
    b_rows = b + first * b_stride + head * D_V
    b_step = b_stride.to(tl.int32)
    b_tile = tl.load(b_rows + (node * b_step)[:, None] + value[None, :], mask=inside[:, None], other=0.0)
    b_f32 = b_tile.to(tl.float32)
    v_rows = v + first * v_stride + head * D_V
    v_step = v_stride.to(tl.int32)
    v_tile = tl.load(v_rows + (node * v_step)[:, None] + value[None, :], mask=inside[:, None], other=0.0)
    v_f32 = v_tile.to(tl.float32)
    tl.store((unknowns + (first + node) * (VALUE_HEADS * D_V) + head * D_V)[:, None] + value[None, :],
        1.0 / (1.0 + tl.exp(-b_f32)) * v_f32 - 1.0 / (1.0 + tl.exp(-b_f32)) * (tl.exp2(c + c_rest) * erased),
        mask=inside[:, None])
    path_rows = folded + (request * VALUE_HEADS + head).to(tl.int64) * (2 * MAX_NODES * PATH)

    # node after node: unknowns of ancestors are there when a node's turn comes
    tl.debug_barrier()
    for j in range(0, count):
        node_now = j + tl.arange(0, 1)
        inside_now = node_now < count
        length = tl.load(depths + first + j)
        c_now = tl.load(vector_rows + 64 * MAX_NODES + (node_now * D_V)[:, None] + value[None, :],
            mask=inside_now[:, None], other=0.0)
        c_rest_now = tl.load(vector_rows + 128 * MAX_NODES + (node_now * D_V)[:, None] + value[None, :],
            mask=inside_now[:, None], other=0.0)
        step = tl.arange(0, 16)
        inside_source = step < length
        node_source = tl.load(path_rows + 1 * (MAX_NODES * PATH) + j * PATH + step, mask=inside_source,
            other=0.0).to(tl.int32)
        u_source = tl.load((unknowns + (first + node_source) * (VALUE_HEADS * D_V) + head * D_V)[:, None]
            + value[None, :], mask=inside_source[:, None], other=0.0)
        c_source = tl.load(vector_rows + 64 * MAX_NODES + (node_source * D_V)[:, None] + value[None, :],
            mask=inside_source[:, None], other=0.0)
        c_rest_source = tl.load(vector_rows + 128 * MAX_NODES + (node_source * D_V)[:, None]
            + value[None, :], mask=inside_source[:, None], other=0.0)
        decay = tl.where(inside_source[:, None], tl.exp2((c_now - c_source) + (c_rest_now - c_rest_source)),
            0.0)
        g = tl.load(path_rows + j * PATH + step, mask=inside_source, other=0.0)
        seen = tl.sum(decay * (g[:, None] * u_source), axis=0, keep_dims=True)
        b_rows = b + first * b_stride + head * D_V
        b_step = b_stride.to(tl.int32)
        b_tile_now = tl.load(b_rows + (node_now * b_step)[:, None] + value[None, :],
            mask=inside_now[:, None], other=0.0)
        b_f32_now = b_tile_now.to(tl.float32)
        u = (tl.load((unknowns + (first + node_now) * (VALUE_HEADS * D_V) + head * D_V)[:, None]
            + value[None, :], mask=inside_now[:, None], other=0.0) - 1.0 / (1.0 + tl.exp(-b_f32_now)) * seen)
        tl.store((unknowns + (first + node_now) * (VALUE_HEADS * D_V) + head * D_V)[:, None]
            + value[None, :], u, mask=inside_now[:, None])
        tl.debug_barrier()


