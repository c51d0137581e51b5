@triton.jit
def prepare(cu_nodes, A_log, b, b_stride, capacity, rows, q, q_stride, k, k_stride, f, f_stride, v, v_stride):
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
        unit = task
        node = tl.arange(0, 128)
        inside = node < count
        row = first + node
        head = unit
        A_log_head = tl.load(A_log + head)
        b_rows = b + first * b_stride + head
        b_step = b_stride.to(tl.int32)
        b_row = tl.load(b_rows + node * b_step, mask=inside, other=0.0).to(tl.float32)
        # exp_A_log: kda.bole:11
        exp_A_log = tl.where(inside, tl.exp(A_log_head), 0.0)
        tl.store(rows + head * capacity + row, exp_A_log, mask=inside)
        # beta: kda.bole:12
        beta = tl.where(inside, 1.0 / (1.0 + tl.exp(-b_row)), 0.0)
        tl.store(rows + (VALUE_HEADS + head) * capacity + row, beta, mask=inside)
    if (task >= 4) & (task < 28):
        # row scalars of one key head
        unit = (task - 4) % 4
        node = (task - 4) // 4 * 16 + tl.arange(0, 16)
        inside = node < count
        row = first + node
        key_head = unit
        key_c0 = tl.arange(0, B_K)
        key_c1 = 32 + tl.arange(0, B_K)
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
        f_rows = f + first * f_stride + key_head * D_K
        f_step = f_stride.to(tl.int32)
        f_tile_c0 = tl.load(f_rows + (node * f_step)[:, None] + key_c0[None, :], mask=inside[:, None],
            other=0.0)
        f_tile_c1 = tl.load(f_rows + (node * f_step)[:, None] + key_c1[None, :], mask=inside[:, None],
            other=0.0)
        # norm_k: kda.bole:10
        k_f32_c0 = k_tile_c0.to(tl.float32)
        k_f32_c1 = k_tile_c1.to(tl.float32)
        square_k = tl.sum(k_f32_c0 * k_f32_c0, axis=1) + tl.sum(k_f32_c1 * k_f32_c1, axis=1)
        norm_k = tl.where(inside, tl.rsqrt(square_k + 1e-06), 0.0)
        tl.store(rows + (2 * VALUE_HEADS + key_head) * capacity + row, norm_k, mask=inside)
        # norm_q: kda.bole:9
        q_f32_c0 = q_tile_c0.to(tl.float32)
        q_f32_c1 = q_tile_c1.to(tl.float32)
        square_q = tl.sum(q_f32_c0 * q_f32_c0, axis=1) + tl.sum(q_f32_c1 * q_f32_c1, axis=1)
        norm_q = tl.where(inside, tl.rsqrt(square_q + 1e-06), 0.0)
        tl.store(rows + (3 * VALUE_HEADS + key_head) * capacity + row, norm_q, mask=inside)
        # guard_f: kda.bole:8
        f_f32_c0 = f_tile_c0.to(tl.float32)
        f_f32_c1 = f_tile_c1.to(tl.float32)
        guard_f = tl.where(inside, tl.sum(f_f32_c0 * f_f32_c0, axis=1) + tl.sum(f_f32_c1 * f_f32_c1, axis=1),
            0.0)
        tl.store(rows + (5 * VALUE_HEADS + key_head) * capacity + row, guard_f, mask=inside)
    if (task >= 28) & (task < 52):
        # row scalars of one value head
        unit = (task - 28) % 4
        node = (task - 28) // 4 * 16 + tl.arange(0, 16)
        inside = node < count
        row = first + node
        head = unit
        key_head = head
        key_c0 = tl.arange(0, B_K)
        key_c1 = 32 + tl.arange(0, B_K)
        # guard_v: kda.bole:8
        v_rows = v + first * v_stride + head * D_V
        v_step = v_stride.to(tl.int32)
        v_full = tl.load(v_rows + (node * v_step)[:, None] + tl.arange(0, 32)[None, :],
            mask=inside[:, None] & (tl.arange(0, 32) < D_V)[None, :], other=0.0).to(tl.float32)
        guard_v = tl.where(inside, tl.sum(v_full * v_full, axis=1), 0.0)
        tl.store(rows + (4 * VALUE_HEADS + head) * capacity + row, guard_v, mask=inside)


