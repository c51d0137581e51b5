@triton.jit
def commit(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    state_stride, a_stride, b1_stride, b2_stride, k1_stride, v1_stride, k2_stride, v2_stride,
):
    """Advance state and convolution window along the accepted path; all layers in one launch."""
    program = tl.program_id(0)
    unit = program % 16
    request = program // 16 % batch
    layer = program // (16 * batch)
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
        head = unit // 2
        key_head = head // GROUP
        value = unit % 2 * 32 + tl.arange(0, 32)
        key = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
        state_at = tl.multiple_of(tl.load(table + layer * 11 + 0).to(tl.pointer_type(tl.float32)), 16)
        # [key pieces, rows, keys of a piece]: the hint has lanes lie along rows next
        cell = tl.max_contiguous((head * D_V + value)[None, :, None] * D_K + key[:, None, :], (1, 2, 16))
        tile = tl.load(state_at + slot.to(tl.int64) * state_stride + cell,
            eviction_policy="evict_first").to(tl.float32)
        q_at = tl.multiple_of(tl.load(table + layer * 11 + 1).to(tl.pointer_type(tl.bfloat16)), 16)
        k1_at = tl.multiple_of(tl.load(table + layer * 11 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
        v1_at = tl.multiple_of(tl.load(table + layer * 11 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
        b1_at = tl.multiple_of(tl.load(table + layer * 11 + 4).to(tl.pointer_type(tl.bfloat16)), 16)
        k2_at = tl.multiple_of(tl.load(table + layer * 11 + 5).to(tl.pointer_type(tl.bfloat16)), 16)
        v2_at = tl.multiple_of(tl.load(table + layer * 11 + 6).to(tl.pointer_type(tl.bfloat16)), 16)
        b2_at = tl.multiple_of(tl.load(table + layer * 11 + 7).to(tl.pointer_type(tl.bfloat16)), 16)
        a_at = tl.multiple_of(tl.load(table + layer * 11 + 8).to(tl.pointer_type(tl.bfloat16)), 16)
        A_log_at = tl.multiple_of(tl.load(table + layer * 11 + 9).to(tl.pointer_type(tl.float32)), 16)
        A_log_head = tl.load(A_log_at + head)
        dt_bias_at = tl.multiple_of(tl.load(table + layer * 11 + 10).to(tl.pointer_type(tl.float32)), 16)
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
        k1_now = tl.load(k1_at + row * k1_stride + key_head * D_K + key)
        v1_now = tl.load(v1_at + row * v1_stride + head * D_V + value)
        k2_now = tl.load(k2_at + row * k2_stride + key_head * D_K + key)
        v2_now = tl.load(v2_at + row * v2_stride + head * D_V + value)
        # decay: gated_delta_product.bole:12
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
        b1_path = tl.load(b1_at + (first + nodes) * b1_stride + head, mask=steps < length,
            other=0.0).to(tl.float32)
        sigmoid_b1_path = 1.0 / (1.0 + tl.exp(-b1_path))
        scaled_b1_path = 2.0 * sigmoid_b1_path
        b2_path = tl.load(b2_at + (first + nodes) * b2_stride + head, mask=steps < length,
            other=0.0).to(tl.float32)
        sigmoid_b2_path = 1.0 / (1.0 + tl.exp(-b2_path))
        scaled_b2_path = 2.0 * sigmoid_b2_path
        owed = tl.full([], 1.0, tl.float32)
        for step in range(length):
            row = first + tl.sum(tl.gather(nodes, tl.full([1], tl.minimum(step + 1, 15), tl.int32), 0))
            k1_next = tl.load(k1_at + row * k1_stride + key_head * D_K + key)
            v1_next = tl.load(v1_at + row * v1_stride + head * D_V + value)
            k2_next = tl.load(k2_at + row * k2_stride + key_head * D_K + key)
            v2_next = tl.load(v2_at + row * v2_stride + head * D_V + value)
            # one token of the recurrence
            # decay: gated_delta_product.bole:12
            owed = owed * tl.sum(tl.gather(gates, tl.full([1], step, tl.int32), 0))
            if (owed < 1.52587890625e-05) | (owed > 65536.0):
                # rare: the barrier keeps it a branch, else each step would multiply
                tl.debug_barrier()
                tile = tile * owed
                owed = tl.full([], 1.0, tl.float32)
            paid = 1.0 / owed
            # u0: gated_delta_product.bole:14
            sigmoid_b1 = tl.sum(tl.gather(sigmoid_b1_path, tl.full([1], step, tl.int32), 0))
            k1_row = k1_now.to(tl.float32)
            square_k1 = tl.sum(k1_row * k1_row)
            norm_k1 = tl.rsqrt(square_k1 + 1e-06)
            scaled_b1 = tl.sum(tl.gather(scaled_b1_path, tl.full([1], step, tl.int32), 0))
            v1_row = v1_now.to(tl.float32)
            scaled_v1 = scaled_b1 * v1_row
            u0 = (scaled_v1 - owed * 2.0 * sigmoid_b1 * norm_k1
                * tl.sum(tl.sum(tile * k1_row[:, None, :], axis=0), axis=1))
            # u1: gated_delta_product.bole:16
            sigmoid_b2 = tl.sum(tl.gather(sigmoid_b2_path, tl.full([1], step, tl.int32), 0))
            k2_row = k2_now.to(tl.float32)
            square_k2 = tl.sum(k2_row * k2_row)
            norm_k2 = tl.rsqrt(square_k2 + 1e-06)
            scaled_b2 = tl.sum(tl.gather(scaled_b2_path, tl.full([1], step, tl.int32), 0))
            v2_row = v2_now.to(tl.float32)
            scaled_v2 = scaled_b2 * v2_row
            k1_2 = norm_k1 * k1_row
            k2_2 = norm_k2 * k2_row
            k1_dot_k2 = tl.sum(k1_2 * k2_2)
            u1 = (scaled_v2 - owed * 2.0 * sigmoid_b2 * norm_k2
                * tl.sum(tl.sum(tile * k2_row[:, None, :], axis=0), axis=1) - scaled_b2 * k1_dot_k2 * u0)
            # new state: gated_delta_product.bole:17
            written_u0 = paid * norm_k1 * u0
            written_u1 = paid * norm_k2 * u1
            tile = (tile + written_u0[None, :, None] * k1_row[:, None, :] + written_u1[None, :, None]
                * k2_row[:, None, :])
            if step == track_step:
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell,
                    (tile * owed).to(state_at.dtype.element_ty), eviction_policy="evict_first")
            k1_now = k1_next
            v1_now = v1_next
            k2_now = k2_next
            v2_now = v2_next
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell,
            (tile * owed).to(state_at.dtype.element_ty), eviction_policy="evict_first")
