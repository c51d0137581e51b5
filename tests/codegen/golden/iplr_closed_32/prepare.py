@triton.jit
def prepare(cu_nodes, q, q_stride, k, k_stride, a, a_stride, b, b_stride, capacity, rows, v, v_stride):
    """Before the tree is solved: norms, gates and their sums along the paths."""
    program = tl.program_id(0)
    task = program % 12
    request = program // 12
    tl.extra.cuda.gdc_wait()
    # after the wait: a kernel that starts early knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    if task < 4:
        # row scalars of one key head
        unit = task % 2
        node = task // 2 * 16 + tl.arange(0, 16)
        inside = node < count
        row = first + node
        key_head = unit
        key = tl.arange(0, B_K)
        q_rows = q + first * q_stride + key_head * D_K
        q_step = q_stride.to(tl.int32)
        q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
        k_rows = k + first * k_stride + key_head * D_K
        k_step = k_stride.to(tl.int32)
        k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
        a_rows = a + first * a_stride + key_head * D_K
        a_step = a_stride.to(tl.int32)
        a_tile = tl.load(a_rows + (node * a_step)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
        b_rows = b + first * b_stride + key_head * D_K
        b_step = b_stride.to(tl.int32)
        b_tile = tl.load(b_rows + (node * b_step)[:, None] + key[None, :],
            mask=inside[:, None] & (key < D_K)[None, :], other=0.0)
        # guard_q: iplr.bole:6
        q_f32 = q_tile.to(tl.float32)
        guard_q = tl.where(inside, tl.sum(q_f32 * q_f32, axis=1), 0.0)
        tl.store(rows + key_head * capacity + row, guard_q, mask=inside)
        # guard_k: iplr.bole:6
        k_f32 = k_tile.to(tl.float32)
        guard_k = tl.where(inside, tl.sum(k_f32 * k_f32, axis=1), 0.0)
        tl.store(rows + (VALUE_HEADS + key_head) * capacity + row, guard_k, mask=inside)
        # guard_a: iplr.bole:6
        a_f32 = a_tile.to(tl.float32)
        guard_a = tl.where(inside, tl.sum(a_f32 * a_f32, axis=1), 0.0)
        tl.store(rows + (3 * VALUE_HEADS + key_head) * capacity + row, guard_a, mask=inside)
        # guard_b: iplr.bole:6
        b_f32 = b_tile.to(tl.float32)
        guard_b = tl.where(inside, tl.sum(b_f32 * b_f32, axis=1), 0.0)
        tl.store(rows + (4 * VALUE_HEADS + key_head) * capacity + row, guard_b, mask=inside)
    if (task >= 4) & (task < 12):
        # row scalars of one value head
        unit = (task - 4) % 4
        node = (task - 4) // 4 * 16 + tl.arange(0, 16)
        inside = node < count
        row = first + node
        head = unit
        key_head = head // GROUP
        key = tl.arange(0, B_K)
        # guard_v: iplr.bole:6
        v_rows = v + first * v_stride + head * D_V
        v_step = v_stride.to(tl.int32)
        v_full = tl.load(v_rows + (node * v_step)[:, None] + tl.arange(0, 64)[None, :],
            mask=inside[:, None] & (tl.arange(0, 64) < D_V)[None, :], other=0.0).to(tl.float32)
        guard_v = tl.where(inside, tl.sum(v_full * v_full, axis=1), 0.0)
        tl.store(rows + (2 * VALUE_HEADS + head) * capacity + row, guard_v, mask=inside)


