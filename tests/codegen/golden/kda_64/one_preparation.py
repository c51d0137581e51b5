@triton.jit
def one_preparation(
    program, cu_nodes, A_log, b, b_stride, q, q_stride, k, k_stride, f, f_stride, v, v_stride, dt_bias,
    products, capacity, ancestors, depths, rows, folded, signals,
):
    """Before the tree is solved: norms, gates, walks up the paths of a few nodes."""
    node_tile = program % 4
    head = program // 4 % VALUE_HEADS
    request = program // 4 // VALUE_HEADS
    key_head = head
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    node = node_tile * 16 + tl.arange(0, 16)
    inside = node < count
    key = tl.arange(0, 128)
    A_log_head = tl.load(A_log + head)
    b_rows = b + first * b_stride + head
    b_step = b_stride.to(tl.int32)
    b_row = tl.load(b_rows + node * b_step, mask=inside, other=0.0).to(tl.float32)
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile = tl.load(q_rows + (node * q_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile = tl.load(k_rows + (node * k_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    f_rows = f + first * f_stride + key_head * D_K
    f_step = f_stride.to(tl.int32)
    f_tile = tl.load(f_rows + (node * f_step)[:, None] + key[None, :], mask=inside[:, None], other=0.0)
    v_rows = v + first * v_stride + head * D_V
    v_step = v_stride.to(tl.int32)
    v_full = tl.load(v_rows + (node * v_step)[:, None] + tl.arange(0, 128)[None, :],
        mask=inside[:, None] & (tl.arange(0, 128) < D_V)[None, :], other=0.0).to(tl.float32)
    dt_bias_head = tl.load(dt_bias + key_head * D_K + key, mask=key < D_K, other=0.0)[None, :]
    k_k_rows = products + (head * capacity + first) * COLUMNS
    q_k_rows = products + ((VALUE_HEADS + head) * capacity + first) * COLUMNS

    # every node walks up its path; what it reads has decayed by what it has passed
    left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~(1 << (node & 63).to(tl.int64))
    deepest = tl.max(tl.load(depths + first + node, mask=inside, other=-1), axis=0)
    node_reached = tl.where(inside, node, -1)
    passed = tl.full([16, 128], 1.0, tl.float32)
    highest_0 = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
    node_next = tl.where(left_0 != 0, highest_0, -1)
    bit = 1 << (tl.maximum(node_next, 0) & 63).to(tl.int64)
    left_0 = left_0 & ~bit
    inside_next = node_next >= 0
    f_tile_next = tl.load(f_rows + (node_next * f_step)[:, None] + key[None, :], mask=inside_next[:, None],
        other=0.0)
    k_tile_next = tl.load(k_rows + (node_next * k_step)[:, None] + key[None, :], mask=inside_next[:, None],
        other=0.0)
    f_f32 = f_tile.to(tl.float32)
    f_f32_reached = f_f32
    k_f32 = k_tile.to(tl.float32)
    k_f32_reached = k_f32

    # row scalars of the program's nodes
    # exp_A_log: kda.bole:11
    exp_A_log = tl.where(inside, tl.exp(A_log_head), 0.0)
    exp_A_log_at = rows + head * capacity + first
    tl.store(exp_A_log_at + node, exp_A_log, mask=inside)
    # beta: kda.bole:12
    beta = tl.where(inside, 1.0 / (1.0 + tl.exp(-b_row)), 0.0)
    beta_at = rows + (VALUE_HEADS + head) * capacity + first
    tl.store(beta_at + node, beta, mask=inside)
    # norm_k: kda.bole:10
    square_k = tl.sum(k_f32 * k_f32, axis=1)
    norm_k = tl.where(inside, tl.rsqrt(square_k + 1e-06), 0.0)
    # norm_q: kda.bole:9
    q_f32 = q_tile.to(tl.float32)
    square_q = tl.sum(q_f32 * q_f32, axis=1)
    norm_q = tl.where(inside, tl.rsqrt(square_q + 1e-06), 0.0)
    # guard_v: kda.bole:8
    guard_v = tl.where(inside, tl.sum(v_full * v_full, axis=1), 0.0)
    # guard_f: kda.bole:8
    guard_f = tl.where(inside, tl.sum(f_f32 * f_f32, axis=1), 0.0)
    gates_size = tl.where(inside, tl.sum(dt_bias_head * 0.0, axis=1), 0.0)
    which = tl.arange(0, 8)[None, :]
    row_tile = norm_k[:, None]
    plane = (2 * VALUE_HEADS + key_head) + 0 * which
    row_tile = tl.where(which == 1, norm_q[:, None], row_tile)
    plane = tl.where(which == 1, (3 * VALUE_HEADS + key_head), plane)
    row_tile = tl.where(which == 2, guard_v[:, None], row_tile)
    plane = tl.where(which == 2, (4 * VALUE_HEADS + head), plane)
    row_tile = tl.where(which == 3, guard_f[:, None], row_tile)
    plane = tl.where(which == 3, (5 * VALUE_HEADS + key_head), plane)
    row_tile = tl.where(which == 4, gates_size[:, None], row_tile)
    plane = tl.where(which == 4, (6 * VALUE_HEADS + head), plane)
    tl.store(rows + plane * capacity + first + node[:, None], row_tile, mask=inside[:, None] & (which < 5))
    turn = tl.arange(0, 16)[None, :]
    path = tl.full([16, 16], -1, tl.int32)
    walked_k_k = tl.zeros([16, 16], tl.float32)
    walked_q_k = tl.zeros([16, 16], tl.float32)

    # every node walks up its path; what it reads has decayed by what it has passed
    for step in range(0, deepest + 1):
        inside_reached = node_reached >= 0
        path = tl.where(turn == step, node_reached[:, None], path)
        k_decayed = passed * k_f32_reached
        walked_k_k = tl.where(turn == step, tl.sum(k_f32 * k_decayed, axis=1)[:, None], walked_k_k)
        walked_q_k = tl.where(turn == step, tl.sum(q_f32 * k_decayed, axis=1)[:, None], walked_q_k)
        # decay: kda.bole:13
        # exp_A_log: kda.bole:11
        exp_A_log_reached = tl.where(inside_reached, tl.exp(A_log_head), 0.0)
        scaled_dt_bias_reached = dt_bias_head + f_f32_reached
        softplus_part = tl.exp2(tl.abs(scaled_dt_bias_reached) * -1.4426950408889634)
        scaled_dt_bias_reached_2 = (tl.maximum(scaled_dt_bias_reached, 0.0) + softplus_part
            * (0.99999994 + softplus_part
            * (-0.49999493 + softplus_part
            * (0.33319086 + softplus_part
            * (-0.24842922 + softplus_part
            * (0.19105825 + softplus_part
            * (-0.13662934 + softplus_part
            * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))))
        scaled_dt_bias_reached_3 = exp_A_log_reached[:, None] * scaled_dt_bias_reached_2
        scaled_g_reached = -scaled_dt_bias_reached_3
        rate = tl.where(inside_reached, 1.4426950408889634, 0.0)[:, None]
        # at most one, which NaN is no less than
        decay_reached = tl.minimum(tl.exp2(scaled_g_reached * rate), 1.0)
        passed = passed * decay_reached
        # on to the next nodes, and the loads of those behind them
        node_reached = node_next
        f_f32_reached = f_tile_next.to(tl.float32)
        k_f32_reached = k_tile_next.to(tl.float32)
        highest_0 = ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127
        node_next = tl.where(left_0 != 0, highest_0, -1)
        bit = 1 << (tl.maximum(node_next, 0) & 63).to(tl.int64)
        left_0 = left_0 & ~bit
        inside_next = node_next >= 0
        f_tile_next = tl.load(f_rows + (node_next * f_step)[:, None] + key[None, :],
            mask=inside_next[:, None], other=0.0)
        k_tile_next = tl.load(k_rows + (node_next * k_step)[:, None] + key[None, :],
            mask=inside_next[:, None], other=0.0)
    cell = (node * COLUMNS)[:, None] + path
    tl.store(k_k_rows + cell, walked_k_k, mask=path >= 0)
    tl.store(q_k_rows + cell, walked_q_k, mask=path >= 0)

    # what reads the state, times the decays of its path
    place = folded + (request * VALUE_HEADS + head).to(tl.int64) * (2 * (NODE_BLOCK * NODE_BLOCK) + 32768)
    k_decayed = passed * k_f32
    k_decayed_top = ((k_decayed.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    k_decayed_hi = k_decayed_top.to(tl.bfloat16)
    k_decayed_lo = (k_decayed - k_decayed_top).to(tl.bfloat16)
    tl.store(place + 8192 + (node * 128)[:, None] + key[None, :], k_decayed_hi, mask=inside[:, None])
    tl.store(place + 16384 + (node * 128)[:, None] + key[None, :], k_decayed_lo, mask=inside[:, None])
    q_decayed = passed * q_f32
    q_decayed_top = ((q_decayed.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
    q_decayed_hi = q_decayed_top.to(tl.bfloat16)
    q_decayed_lo = (q_decayed - q_decayed_top).to(tl.bfloat16)
    tl.store(place + 24576 + (node * 128)[:, None] + key[None, :], q_decayed_hi, mask=inside[:, None])
    tl.store(place + 32768 + (node * 128)[:, None] + key[None, :], q_decayed_lo, mask=inside[:, None])

    # all threads have stored: one program less that others of the request wait for
    tl.debug_barrier()
    tl.atomic_add(signals + request * SIGNALS, 1, sem="release")


