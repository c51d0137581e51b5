@triton.jit
def prepare(cu_nodes, b, b_stride, capacity, rows, q, q_stride, k, k_stride, v, v_stride, g, g_stride):
    """Before the tree is solved: norms, gates and their sums along the paths."""
    program = tl.program_id(0)
    task = program % 52
    request = program // 52
    tl.extra.cuda.gdc_wait()
    # after the wait: a kernel that starts early knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    if task < 4:
        # row scalars of some value heads
        lane = tl.arange(0, 128)
        unit = (task) * 2 + lane // 64
        node = lane % 64
        inside = node < count
        row = first + node
        head = unit
        b_rows = b + first * b_stride + head
        b_step = b_stride.to(tl.int32)
        b_row = tl.load(b_rows + node * b_step, mask=inside, other=0.0).to(tl.float32)
        # beta: gated_oja.bole:12
        beta = tl.where(inside, 1.0 / (1.0 + tl.exp(-b_row)), 0.0)
        tl.store(rows + (VALUE_HEADS + head) * capacity + row, beta, mask=inside)
    if (task >= 4) & (task < 20):
        # row scalars of one key head
        unit = (task - 4) % 4
        node = (task - 4) // 4 * 16 + tl.arange(0, 16)
        inside = node < count
        row = first + node
        key_head = unit
        key_c0 = tl.arange(0, B_K)
        key_c1 = 64 + tl.arange(0, B_K)
        q_rows = q + first * q_stride + key_head * D_K
        q_step = q_stride.to(tl.int32)
        q_tile_c0 = tl.load(q_rows + (node * q_step)[:, None] + key_c0[None, :], mask=inside[:, None],
            other=0.0)
        q_tile_c1 = tl.load(q_rows + (node * q_step)[:, None] + key_c1[None, :], mask=inside[:, None],
            other=0.0)
        k_rows = k + first * k_stride + key_head * D_K
        k_step = k_stride.to(tl.int32)
        k_tile_c0 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :], mask=inside[:, None],
            other=0.0)
        k_tile_c1 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :], mask=inside[:, None],
            other=0.0)
        # norm_k: gated_oja.bole:11
        k_f32_c0 = k_tile_c0.to(tl.float32)
        k_f32_c1 = k_tile_c1.to(tl.float32)
        square_k = tl.sum(k_f32_c0 * k_f32_c0, axis=1) + tl.sum(k_f32_c1 * k_f32_c1, axis=1)
        norm_k = tl.where(inside, tl.rsqrt(square_k + 1e-06), 0.0)
        tl.store(rows + key_head * capacity + row, norm_k, mask=inside)
        # norm_q: gated_oja.bole:10
        q_f32_c0 = q_tile_c0.to(tl.float32)
        q_f32_c1 = q_tile_c1.to(tl.float32)
        square_q = tl.sum(q_f32_c0 * q_f32_c0, axis=1) + tl.sum(q_f32_c1 * q_f32_c1, axis=1)
        norm_q = tl.where(inside, tl.rsqrt(square_q + 1e-06), 0.0)
        tl.store(rows + (2 * VALUE_HEADS + key_head) * capacity + row, norm_q, mask=inside)
    if (task >= 20) & (task < 52):
        # row scalars of one value head
        unit = (task - 20) % 8
        node = (task - 20) // 8 * 16 + tl.arange(0, 16)
        inside = node < count
        row = first + node
        head = unit
        key_head = head // GROUP
        key_c0 = tl.arange(0, B_K)
        key_c1 = 64 + tl.arange(0, B_K)
        # guard_v: gated_oja.bole:9
        v_rows = v + first * v_stride + head * D_V
        v_step = v_stride.to(tl.int32)
        v_full = tl.load(v_rows + (node * v_step)[:, None] + tl.arange(0, 128)[None, :],
            mask=inside[:, None] & (tl.arange(0, 128) < D_V)[None, :], other=0.0).to(tl.float32)
        guard_v = tl.where(inside, tl.sum(v_full * v_full, axis=1), 0.0)
        tl.store(rows + (3 * VALUE_HEADS + head) * capacity + row, guard_v, mask=inside)
        # guard_g: gated_oja.bole:9
        g_rows = g + first * g_stride + head * D_V
        g_step = g_stride.to(tl.int32)
        g_full = tl.load(g_rows + (node * g_step)[:, None] + tl.arange(0, 128)[None, :],
            mask=inside[:, None] & (tl.arange(0, 128) < D_V)[None, :], other=0.0).to(tl.float32)
        guard_g = tl.where(inside, tl.sum(g_full * g_full, axis=1), 0.0)
        tl.store(rows + (4 * VALUE_HEADS + head) * capacity + row, guard_g, mask=inside)


