@triton.jit
def commit(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    state_stride, a_stride, b_stride, window_stride, q_stride, k_stride, v_stride, near,
):
    """Advance state and convolution window along the accepted path; all layers in one launch."""
    program = tl.program_id(0)
    unit = program % 320
    request = program // 320 % batch
    layer = program // (320 * batch)
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
    if (unit < 256) & valid:
        head = unit // 8
        key_head = head // GROUP
        value = unit % 8 * 16 + tl.arange(0, 16)
        key = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
        state_at = tl.multiple_of(tl.load(table + layer * 10 + 0).to(tl.pointer_type(tl.float32)), 16)
        # [key pieces, rows, keys of a piece]: the hint has lanes lie along rows next
        cell = tl.max_contiguous((head * D_V + value)[None, :, None] * D_K + key[:, None, :], (1, 2, 32))
        tile = tl.load(state_at + slot.to(tl.int64) * state_stride + cell,
            eviction_policy="evict_first").to(tl.float32)
        a_at = tl.multiple_of(tl.load(table + layer * 10 + 1).to(tl.pointer_type(tl.bfloat16)), 16)
        b_at = tl.multiple_of(tl.load(table + layer * 10 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
        mixed_at = tl.multiple_of(tl.load(table + layer * 10 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
        A_log_at = tl.multiple_of(tl.load(table + layer * 10 + 4).to(tl.pointer_type(tl.float32)), 16)
        A_log_head = tl.load(A_log_at + head)
        dt_bias_at = tl.multiple_of(tl.load(table + layer * 10 + 5).to(tl.pointer_type(tl.float32)), 16)
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
        k_now = tl.load(mixed_at + row * KEPT_CHANNELS + key_head * D_K + key)
        v_now = tl.load(mixed_at + row * KEPT_CHANNELS + 2048 + head * D_V + value)
        # decay: gdn.bole:12
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
            k_next = tl.load(mixed_at + row * KEPT_CHANNELS + key_head * D_K + key)
            v_next = tl.load(mixed_at + row * KEPT_CHANNELS + 2048 + head * D_V + value)
            # one token of the recurrence
            # decay: gdn.bole:12
            owed = owed * tl.sum(tl.gather(gates, tl.full([1], step, tl.int32), 0))
            if (owed < 1.52587890625e-05) | (owed > 65536.0):
                # rare: the barrier keeps it a branch, else each step would multiply
                tl.debug_barrier()
                tile = tile * owed
                owed = tl.full([], 1.0, tl.float32)
            paid = 1.0 / owed
            # u: gdn.bole:15
            beta = tl.sum(tl.gather(beta_path, tl.full([1], step, tl.int32), 0))
            k_row = k_now.to(tl.float32)
            square_k = tl.sum(k_row * k_row)
            norm_k = tl.rsqrt(square_k + 1e-06)
            v_row = v_now.to(tl.float32)
            scaled_v = beta * v_row
            u = scaled_v - owed * beta * norm_k * tl.sum(tl.sum(tile * k_row[:, None, :], axis=0), axis=1)
            # new state: gdn.bole:16
            written_u = paid * norm_k * u
            tile = tile + written_u[None, :, None] * k_row[:, None, :]
            if step == track_step:
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell,
                    (tile * owed).to(state_at.dtype.element_ty), eviction_policy="evict_first")
            k_now = k_next
            v_now = v_next
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell,
            (tile * owed).to(state_at.dtype.element_ty), eviction_policy="evict_first")
    if (unit >= 256) & valid:
        window_at = tl.multiple_of(tl.load(table + layer * 10 + 9).to(tl.pointer_type(tl.bfloat16)), 16)
        # the track node counts where it lies on the path
        tracked = (track_slot >= 0) & (track_node >= 0) & (track_node < count)
        bit = tl.where(tracked, track_node, 0)
        tracked = tracked & (((tl.load(ancestors + last) >> (bit & 63).to(tl.int64)) & 1) != 0)
        if (unit >= 256) & (unit < 320):
            # window of q, k, v
            part = unit - 256
            column = (part - tl.where(part < 16, 0, tl.where(part < 32, 16, 32))) * 128 + tl.arange(0, 128)
            channels = tl.where(part < 32, 2048, 4096)
            place = (tl.where(part < 16, 0, tl.where(part < 32, 2048, 4096)) + column) * 3
            source = tl.multiple_of(tl.load(table + layer * 10
                + tl.where(part < 16, 6, tl.where(part < 32, 7, 8))).to(tl.pointer_type(tl.bfloat16)), 16)
            source_stride = tl.where(part < 16, q_stride, tl.where(part < 32, k_stride, v_stride))
            old = window_at + slot.to(tl.int64) * window_stride + place
            for goal in range(2):
                # first the window at the track node, then that of the accepted node
                end = tl.where(goal == 0, track_node, accepted_node)
                end_slot = tl.where(goal == 0, track_slot, target_slot)
                wanted = tl.where(goal == 0, tracked, end >= 0)
                if wanted:
                    back_0 = tl.minimum(tl.maximum(end, 0), count - 1)
                    end_row = first + back_0
                    inside = column < tl.where(back_0 >= 0, channels, 0)
                    kept = column < tl.where((back_0 < 0) & (back_0 >= -3), channels, 0)
                    entry_0 = tl.load(source + (first + back_0) * source_stride + column, mask=inside,
                        other=0.0)
                    moved = tl.load(old + 3 + back_0, mask=kept, other=0.0)
                    entry_0 = tl.where(inside, entry_0, moved)
                    back_1 = tl.load(near + end_row * 3)
                    inside = column < tl.where(back_1 >= 0, channels, 0)
                    kept = column < tl.where((back_1 < 0) & (back_1 >= -3), channels, 0)
                    entry_1 = tl.load(source + (first + back_1) * source_stride + column, mask=inside,
                        other=0.0)
                    moved = tl.load(old + 3 + back_1, mask=kept, other=0.0)
                    entry_1 = tl.where(inside, entry_1, moved)
                    back_2 = tl.load(near + end_row * 3 + 1)
                    inside = column < tl.where(back_2 >= 0, channels, 0)
                    kept = column < tl.where((back_2 < 0) & (back_2 >= -3), channels, 0)
                    entry_2 = tl.load(source + (first + back_2) * source_stride + column, mask=inside,
                        other=0.0)
                    moved = tl.load(old + 3 + back_2, mask=kept, other=0.0)
                    entry_2 = tl.where(inside, entry_2, moved)
                    new = window_at + end_slot.to(tl.int64) * window_stride + place
                    tl.store(new + 2, entry_0)
                    tl.store(new + 1, entry_1)
                    tl.store(new, entry_2)
