@triton.jit
def decays(cu_nodes, q, q_stride, k, k_stride, f, f_stride, rows, capacity, dt_bias, ancestors, decayed):
    """What walks up the paths gather: parents, decays, vectors that are no inputs."""
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
    q_rows = q + first * q_stride + key_head * D_K
    q_step = q_stride.to(tl.int32)
    q_tile_c0 = tl.load(q_rows + (node * q_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    q_tile_c1 = tl.load(q_rows + (node * q_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    k_rows = k + first * k_stride + key_head * D_K
    k_step = k_stride.to(tl.int32)
    k_tile_c0 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    k_tile_c1 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    f_rows = f + first * f_stride + key_head * D_K
    f_step = f_stride.to(tl.int32)
    f_tile_c0 = tl.load(f_rows + (node * f_step)[:, None] + key_c0[None, :], mask=inside[:, None], other=0.0)
    f_tile_c1 = tl.load(f_rows + (node * f_step)[:, None] + key_c1[None, :], mask=inside[:, None], other=0.0)
    # exp_A_log: kda.bole:11
    exp_A_log_at = rows + head * capacity + first
    exp_A_log = tl.load(exp_A_log_at + node, mask=inside, other=0.0)
    # beta: kda.bole:12
    beta_at = rows + (VALUE_HEADS + head) * capacity + first
    beta = tl.load(beta_at + node, mask=inside, other=0.0)
    # norm_k: kda.bole:10
    norm_k_at = rows + (2 * VALUE_HEADS + key_head) * capacity + first
    norm_k = tl.load(norm_k_at + node, mask=inside, other=0.0)
    # norm_q: kda.bole:9
    norm_q_at = rows + (3 * VALUE_HEADS + key_head) * capacity + first
    norm_q = tl.load(norm_q_at + node, mask=inside, other=0.0)
    # guard_v: kda.bole:8
    guard_v_at = rows + (4 * VALUE_HEADS + head) * capacity + first
    guard_v = tl.load(guard_v_at + node, mask=inside, other=0.0)
    # guard_f: kda.bole:8
    guard_f_at = rows + (5 * VALUE_HEADS + key_head) * capacity + first
    guard_f = tl.load(guard_f_at + node, mask=inside, other=0.0)
    # decay: kda.bole:13
    dt_bias_head = tl.load(dt_bias + key_head * D_K + key_c0, mask=key_c0 < D_K, other=0.0)[None, :]
    f_f32_c0 = f_tile_c0.to(tl.float32)
    scaled_dt_bias_c0 = dt_bias_head + f_f32_c0
    softplus_part = tl.exp2(tl.abs(scaled_dt_bias_c0) * -1.4426950408889634)
    scaled_dt_bias_c0_2 = (tl.maximum(scaled_dt_bias_c0, 0.0) + softplus_part
        * (0.99999994 + softplus_part
        * (-0.49999493 + softplus_part
        * (0.33319086 + softplus_part
        * (-0.24842922 + softplus_part
        * (0.19105825 + softplus_part
        * (-0.13662934 + softplus_part
        * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))))
    scaled_dt_bias_c0_3 = exp_A_log[:, None] * scaled_dt_bias_c0_2
    scaled_g_c0 = -scaled_dt_bias_c0_3
    scaled_dt_bias_c0_4 = tl.exp(scaled_g_c0)
    gates_c0 = tl.where(inside[:, None], scaled_dt_bias_c0_4, 1.0)
    dt_bias_head_2 = tl.load(dt_bias + key_head * D_K + key_c1, mask=key_c1 < D_K, other=0.0)[None, :]
    f_f32_c1 = f_tile_c1.to(tl.float32)
    scaled_dt_bias_c1 = dt_bias_head_2 + f_f32_c1
    softplus_part_2 = tl.exp2(tl.abs(scaled_dt_bias_c1) * -1.4426950408889634)
    scaled_dt_bias_c1_2 = (tl.maximum(scaled_dt_bias_c1, 0.0) + softplus_part_2
        * (0.99999994 + softplus_part_2
        * (-0.49999493 + softplus_part_2
        * (0.33319086 + softplus_part_2
        * (-0.24842922 + softplus_part_2
        * (0.19105825 + softplus_part_2
        * (-0.13662934 + softplus_part_2
        * (0.07822299 + softplus_part_2 * (-0.029503778 + softplus_part_2 * 0.0052324063)))))))))
    scaled_dt_bias_c1_3 = exp_A_log[:, None] * scaled_dt_bias_c1_2
    scaled_g_c1 = -scaled_dt_bias_c1_3
    scaled_dt_bias_c1_4 = tl.exp(scaled_g_c1)
    gates_c1 = tl.where(inside[:, None], scaled_dt_bias_c1_4, 1.0)
    gates_size = tl.sum(tl.abs(gates_c0), axis=1) + tl.sum(tl.abs(gates_c1), axis=1)
    finite = ((tl.abs(exp_A_log) < 3.0e38) & (tl.abs(beta) < 3.0e38) & ((norm_k > 0.0) & (norm_k < 3.0e38))
        & ((norm_q > 0.0) & (norm_q < 3.0e38)) & (tl.abs(guard_v) < 3.0e38) & (tl.abs(guard_f) < 3.0e38)
        & (tl.abs(gates_size) < 3.0e38))

    # for the walks: parents, decays, other vectors that are no inputs
    # without the bit below the highest, rounding to a float keeps the exponent
    own = 1 << (node & 63).to(tl.int64)
    left_0 = (tl.load(ancestors + (first + node) * 2 + 0, mask=inside, other=0)
        & ~tl.where(node // 64 == 0, own, 0))
    parent = tl.where(left_0 != 0, tl.where(left_0 < 0, 63,
        ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127), -1)
    left_1 = (tl.load(ancestors + (first + node) * 2 + 1, mask=inside, other=0)
        & ~tl.where(node // 64 == 1, own, 0))
    parent = tl.where(left_1 != 0, tl.where(left_1 < 0, 127,
        ((left_1 & ~(left_1 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 63), parent)
    parent_at = rows + (6 * VALUE_HEADS + head) * capacity + first
    tl.store(parent_at + node, parent.to(tl.float32), mask=inside)
    gates_size_at = rows + (7 * VALUE_HEADS + head) * capacity + first
    tl.store(gates_size_at + node, gates_size, mask=inside)
    decayed_2_rows = decayed + ((2 * VALUE_HEADS + head) * capacity + first) * D_K
    tl.store(decayed_2_rows + (node * D_K)[:, None] + key_c0[None, :],
        tl.where(finite[:, None], gates_c0, 1.0), mask=inside[:, None])
    tl.store(decayed_2_rows + (node * D_K)[:, None] + key_c1[None, :],
        tl.where(finite[:, None], gates_c1, 1.0), mask=inside[:, None])


