@triton.jit
def prepare(
    cu_nodes, A_log, dt_bias, b1, b1_stride, b2, b2_stride, a, a_stride, ancestors, capacity, rows, q,
    q_stride, k1, k1_stride, k2, k2_stride, v1, v1_stride, v2, v2_stride,
):
    """Before the tree is solved: norms, gates and their sums along the paths."""
    program = tl.program_id(0)
    task = program % 13
    request = program // 13
    tl.extra.cuda.gdc_wait()
    # after the wait: a kernel that starts early knows that all before this is done
    tl.extra.cuda.gdc_launch_dependents()
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    if task < 1:
        # row scalars, sums along the paths of some value heads
        lane = tl.arange(0, 128)
        unit = (task) * 8 + lane // 16
        node = lane % 16
        inside = node < count
        row = first + node
        head = unit
        A_log_head = tl.load(A_log + head)
        dt_bias_head = tl.load(dt_bias + head)
        b1_rows = b1 + first * b1_stride + head
        b1_step = b1_stride.to(tl.int32)
        b1_row = tl.load(b1_rows + node * b1_step, mask=inside, other=0.0).to(tl.float32)
        b2_rows = b2 + first * b2_stride + head
        b2_step = b2_stride.to(tl.int32)
        b2_row = tl.load(b2_rows + node * b2_step, mask=inside, other=0.0).to(tl.float32)
        a_rows = a + first * a_stride + head
        a_step = a_stride.to(tl.int32)
        a_row = tl.load(a_rows + node * a_step, mask=inside, other=0.0).to(tl.float32)
        # without the bit below the highest, rounding to a float keeps the exponent
        own = 1 << (node & 63).to(tl.int64)
        left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~own
        parent = tl.where(left_0 != 0,
            ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127, -1)
        link = tl.where(parent < 0, -1, lane - node + parent)
        # sigmoid_b1: gated_delta_product.bole:14
        sigmoid_b1 = tl.where(inside, 1.0 / (1.0 + tl.exp(-b1_row)), 0.0)
        tl.store(rows + head * capacity + row, sigmoid_b1, mask=inside)
        # sigmoid_b2: gated_delta_product.bole:16
        sigmoid_b2 = tl.where(inside, 1.0 / (1.0 + tl.exp(-b2_row)), 0.0)
        tl.store(rows + (2 * VALUE_HEADS + head) * capacity + row, sigmoid_b2, mask=inside)
        # log-decay g, and c its sum over the path: gated_delta_product.bole:12
        exp_A_log = tl.exp(A_log_head)
        softplus_argument = a_row + dt_bias_head
        softplus_part = tl.exp2(tl.abs(softplus_argument) * -1.4426950408889634)
        softplus_a = (tl.maximum(softplus_argument, 0.0) + softplus_part
            * (0.99999994 + softplus_part
            * (-0.49999493 + softplus_part
            * (0.33319086 + softplus_part
            * (-0.24842922 + softplus_part
            * (0.19105825 + softplus_part
            * (-0.13662934 + softplus_part
            * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))))
        g = tl.where(inside, -(exp_A_log * softplus_a), 0.0) * 1.4426950408889634
        g = tl.where(g < -4096.0, -4096.0, g)
        c = tl.floor(g * 8.0 + 0.5) * 0.125
        c_rest = g - c
        for _ in tl.static_range(3):
            linked = link >= 0
            end = tl.maximum(link, 0)
            c = c + tl.where(linked, tl.gather(c, end, axis=0), 0.0)
            c_rest = c_rest + tl.where(linked, tl.gather(c_rest, end, axis=0), 0.0)
            link = tl.where(linked, tl.gather(link, end, axis=0), -1)
        tl.store(rows + (8 * VALUE_HEADS + head) * capacity + row, c, mask=inside)
        tl.store(rows + (9 * VALUE_HEADS + head) * capacity + row, c_rest, mask=inside)
    if (task >= 1) & (task < 5):
        # row scalars of one key head
        unit = task - 1
        node = tl.arange(0, 16)
        inside = node < count
        row = first + node
        key_head = unit
        key = tl.arange(0, B_K)
        q_rows = q + first * q_stride + key_head * D_K
        q_step = q_stride.to(tl.int32)
        q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
        k1_rows = k1 + first * k1_stride + key_head * D_K
        k1_step = k1_stride.to(tl.int32)
        k1_tile = tl.load(k1_rows + (node * k1_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
        k2_rows = k2 + first * k2_stride + key_head * D_K
        k2_step = k2_stride.to(tl.int32)
        k2_tile = tl.load(k2_rows + (node * k2_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
        # norm_k1: gated_delta_product.bole:11
        k1_f32 = k1_tile.to(tl.float32)
        square_k1 = tl.sum(k1_f32 * k1_f32, axis=1)
        norm_k1 = tl.where(inside, tl.rsqrt(square_k1 + 1e-06), 0.0)
        tl.store(rows + (VALUE_HEADS + key_head) * capacity + row, norm_k1, mask=inside)
        # norm_k2: gated_delta_product.bole:11
        k2_f32 = k2_tile.to(tl.float32)
        square_k2 = tl.sum(k2_f32 * k2_f32, axis=1)
        norm_k2 = tl.where(inside, tl.rsqrt(square_k2 + 1e-06), 0.0)
        tl.store(rows + (4 * VALUE_HEADS + key_head) * capacity + row, norm_k2, mask=inside)
        # norm_q: gated_delta_product.bole:10
        q_f32 = q_tile.to(tl.float32)
        square_q = tl.sum(q_f32 * q_f32, axis=1)
        norm_q = tl.where(inside, tl.rsqrt(square_q + 1e-06), 0.0)
        tl.store(rows + (5 * VALUE_HEADS + key_head) * capacity + row, norm_q, mask=inside)
    if (task >= 5) & (task < 13):
        # row scalars of one value head
        unit = task - 5
        node = tl.arange(0, 16)
        inside = node < count
        row = first + node
        head = unit
        key_head = head // GROUP
        key = tl.arange(0, B_K)
        b2_rows = b2 + first * b2_stride + head
        b2_step = b2_stride.to(tl.int32)
        b2_row = tl.load(b2_rows + node * b2_step, mask=inside, other=0.0).to(tl.float32)
        k1_rows = k1 + first * k1_stride + key_head * D_K
        k1_step = k1_stride.to(tl.int32)
        k1_tile = tl.load(k1_rows + (node * k1_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
        k2_rows = k2 + first * k2_stride + key_head * D_K
        k2_step = k2_stride.to(tl.int32)
        k2_tile = tl.load(k2_rows + (node * k2_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
        # scaled_b2: gated_delta_product.bole:16
        sigmoid_b2_2 = 1.0 / (1.0 + tl.exp(-b2_row))
        k1_f32 = k1_tile.to(tl.float32)
        square_k1 = tl.sum(k1_f32 * k1_f32, axis=1)
        norm_k1_2 = tl.rsqrt(square_k1 + 1e-06)
        scaled_k1 = norm_k1_2[:, None] * k1_f32
        k2_f32 = k2_tile.to(tl.float32)
        square_k2 = tl.sum(k2_f32 * k2_f32, axis=1)
        norm_k2_2 = tl.rsqrt(square_k2 + 1e-06)
        scaled_k2 = norm_k2_2[:, None] * k2_f32
        k1_dot_k2 = tl.sum(scaled_k1 * scaled_k2, axis=1)
        scaled_b2 = tl.where(inside, 2.0 * sigmoid_b2_2 * k1_dot_k2, 0.0)
        tl.store(rows + (3 * VALUE_HEADS + head) * capacity + row, scaled_b2, mask=inside)
        # guard_v1: gated_delta_product.bole:8
        v1_rows = v1 + first * v1_stride + head * D_V
        v1_step = v1_stride.to(tl.int32)
        v1_full = tl.load(v1_rows + (node * v1_step)[:, None] + tl.arange(0, 64)[None, :],
            mask=inside[:, None] & (tl.arange(0, 64) < D_V)[None, :], other=0.0).to(tl.float32)
        guard_v1 = tl.where(inside, tl.sum(v1_full * v1_full, axis=1), 0.0)
        tl.store(rows + (6 * VALUE_HEADS + head) * capacity + row, guard_v1, mask=inside)
        # guard_v2: gated_delta_product.bole:8
        v2_rows = v2 + first * v2_stride + head * D_V
        v2_step = v2_stride.to(tl.int32)
        v2_full = tl.load(v2_rows + (node * v2_step)[:, None] + tl.arange(0, 64)[None, :],
            mask=inside[:, None] & (tl.arange(0, 64) < D_V)[None, :], other=0.0).to(tl.float32)
        guard_v2 = tl.where(inside, tl.sum(v2_full * v2_full, axis=1), 0.0)
        tl.store(rows + (7 * VALUE_HEADS + head) * capacity + row, guard_v2, mask=inside)


