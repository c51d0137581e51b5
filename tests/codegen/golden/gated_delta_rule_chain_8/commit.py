@triton.jit
def commit(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    state_stride, a_stride, b_stride, k_stride, v_stride,
):
    """Advance state and convolution window along the accepted path; all layers in one launch."""
    program = tl.program_id(0)
    unit = program % 256
    request = program // 256 % batch
    layer = program // (256 * batch)
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    slot = tl.load(slots + request)
    target_slot = tl.load(target_slots + request)
    track_slot = tl.load(track_slots + request)
    track_node = tl.load(track_nodes + request)
    accepted_node = tl.load(accepted + request)
    first = start.to(tl.int64)
    valid = (accepted_node >= 0) & (accepted_node < count) & (slot >= 0) & (target_slot >= 0)
    last = first + tl.where(valid, accepted_node, 0)
    path_0 = tl.load(ancestors + last, mask=valid, other=0)
    length = tl.load(depths + last, mask=valid, other=0) + 1
    if valid:
        head = unit // 8
        key_head = head // GROUP
        value = unit % 8 * 16 + tl.arange(0, 16)
        key = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
        state_at = tl.multiple_of(tl.load(table + layer * 8 + 0).to(tl.pointer_type(tl.float32)), 16)
        # [key pieces, rows, keys of a piece]: the hint has lanes lie along rows next
        cell = tl.max_contiguous((head * D_V + value)[None, :, None] * D_K + key[:, None, :], (1, 2, 32))
        tile = tl.load(state_at + slot.to(tl.int64) * state_stride + cell,
            eviction_policy="evict_first").to(tl.float32)
        q_at = tl.multiple_of(tl.load(table + layer * 8 + 1).to(tl.pointer_type(tl.bfloat16)), 16)
        k_at = tl.multiple_of(tl.load(table + layer * 8 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
        v_at = tl.multiple_of(tl.load(table + layer * 8 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
        a_at = tl.multiple_of(tl.load(table + layer * 8 + 4).to(tl.pointer_type(tl.bfloat16)), 16)
        b_at = tl.multiple_of(tl.load(table + layer * 8 + 5).to(tl.pointer_type(tl.bfloat16)), 16)
        A_log_at = tl.multiple_of(tl.load(table + layer * 8 + 6).to(tl.pointer_type(tl.float32)), 16)
        A_log_head = tl.load(A_log_at + head)
        dt_bias_at = tl.multiple_of(tl.load(table + layer * 8 + 7).to(tl.pointer_type(tl.float32)), 16)
        dt_bias_head = tl.load(dt_bias_at + head)
        steps = tl.arange(0, 16)
        nodes = tl.zeros([16], tl.int32)
        for step in range(length):
            # the lowest bit left is the next node: as a float, its exponent is its number
            lowest_0 = (path_0 & -path_0).to(tl.float32)
            here_0 = path_0 != 0
            current = tl.where(here_0, (tl.abs(lowest_0).to(tl.int32, bitcast=True) >> 23) - 127, 0)
            path_0 = tl.where(here_0, path_0 & (path_0 - 1), path_0)
            nodes = tl.where(steps == step, current, nodes)
        track_step = tl.max(tl.where((nodes == track_node) & (steps < length) & (track_slot >= 0), steps, -1))
        row = first + tl.sum(tl.gather(nodes, tl.full([1], 0, tl.int32), 0))
        k_now = tl.load(k_at + row * k_stride + key_head * D_K + key)
        v_now = tl.load(v_at + row * v_stride + head * D_V + value)
        # decay: gated_delta_rule.bole:10
        exp_A_log_path = tl.exp(A_log_head)
        a_path = tl.load(a_at + (first + nodes) * a_stride + head, mask=steps < length,
            other=0.0).to(tl.float32)
        softplus_argument = a_path + dt_bias_head
        softplus_part = tl.exp2(tl.abs(softplus_argument) * -1.4426950408889634)
        softplus_a_path = (tl.maximum(softplus_argument, 0.0) + softplus_part
            * (0.99999994 + softplus_part
            * (-0.49999493 + softplus_part
            * (0.33319086 + softplus_part
            * (-0.24842922 + softplus_part
            * (0.19105825 + softplus_part
            * (-0.13662934 + softplus_part
            * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))))
        gates = tl.exp(-(exp_A_log_path * softplus_a_path))
        b_path = tl.load(b_at + (first + nodes) * b_stride + head, mask=steps < length,
            other=0.0).to(tl.float32)
        beta_path = 1.0 / (1.0 + tl.exp(-b_path))
        owed = tl.full([], 1.0, tl.float32)
        for step in range(length):
            row = first + tl.sum(tl.gather(nodes, tl.full([1], tl.minimum(step + 1, 15), tl.int32), 0))
            k_next = tl.load(k_at + row * k_stride + key_head * D_K + key)
            v_next = tl.load(v_at + row * v_stride + head * D_V + value)
            # one token of the recurrence
            # decay: gated_delta_rule.bole:10
            owed = owed * tl.sum(tl.gather(gates, tl.full([1], step, tl.int32), 0))
            if (owed < 1.52587890625e-05) | (owed > 65536.0):
                # rare: the barrier keeps it a branch, else each step would multiply
                tl.debug_barrier()
                tile = tile * owed
                owed = tl.full([], 1.0, tl.float32)
            paid = 1.0 / owed
            # u: gated_delta_rule.bole:13
            beta = tl.sum(tl.gather(beta_path, tl.full([1], step, tl.int32), 0))
            k_row = k_now.to(tl.float32)
            square_k = tl.sum(k_row * k_row)
            norm_k = tl.rsqrt(square_k + 1e-06)
            v_row = v_now.to(tl.float32)
            scaled_v = beta * v_row
            u = scaled_v - owed * beta * norm_k * tl.sum(tl.sum(tile * k_row[:, None, :], axis=0), axis=1)
            # new state: gated_delta_rule.bole:14
            written_u = paid * norm_k * u
            tile = tile + written_u[None, :, None] * k_row[:, None, :]
            if step == track_step:
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell,
                    (tile * owed).to(state_at.dtype.element_ty), eviction_policy="evict_first")
            k_now = k_next
            v_now = v_next
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell,
            (tile * owed).to(state_at.dtype.element_ty), eviction_policy="evict_first")
