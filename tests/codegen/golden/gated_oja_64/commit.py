@triton.jit
def commit(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    state_stride, b_stride, g_stride, v_stride, k_stride,
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
        key = unit % 2 * 64 + tl.arange(0, 64)
        value = tl.arange(0, 128)
        state_at = tl.multiple_of(tl.load(table + layer * 6 + 0).to(tl.pointer_type(tl.float32)), 16)
        cell = (head * D_V + value)[:, None] * D_K + key[None, :]
        tile = tl.load(state_at + slot.to(tl.int64) * state_stride + cell, mask=(value < D_V)[:, None],
            other=0.0, eviction_policy="evict_first").to(tl.float32)
        q_at = tl.multiple_of(tl.load(table + layer * 6 + 1).to(tl.pointer_type(tl.bfloat16)), 16)
        k_at = tl.multiple_of(tl.load(table + layer * 6 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
        v_at = tl.multiple_of(tl.load(table + layer * 6 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
        g_at = tl.multiple_of(tl.load(table + layer * 6 + 4).to(tl.pointer_type(tl.bfloat16)), 16)
        b_at = tl.multiple_of(tl.load(table + layer * 6 + 5).to(tl.pointer_type(tl.bfloat16)), 16)
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
        g_now = tl.load(g_at + row * g_stride + head * D_V + value, mask=value < D_V, other=0.0)
        v_now = tl.load(v_at + row * v_stride + head * D_V + value, mask=value < D_V, other=0.0)
        k_all_now = tl.load(k_at + row * k_stride + key_head * D_K + tl.arange(0, 128))
        k_now = tl.load(k_at + row * k_stride + key_head * D_K + key)
        b_path = tl.load(b_at + (first + nodes) * b_stride + head, mask=steps < length,
            other=0.0).to(tl.float32)
        beta_path = 1.0 / (1.0 + tl.exp(-b_path))
        for step in range(length):
            row = first + tl.sum(tl.gather(nodes, tl.full([1], tl.minimum(step + 1, 15), tl.int32), 0))
            g_next = tl.load(g_at + row * g_stride + head * D_V + value, mask=value < D_V, other=0.0)
            v_next = tl.load(v_at + row * v_stride + head * D_V + value, mask=value < D_V, other=0.0)
            k_all_next = tl.load(k_at + row * k_stride + key_head * D_K + tl.arange(0, 128))
            k_next = tl.load(k_at + row * k_stride + key_head * D_K + key)
            # one token of the recurrence
            # decay: gated_oja.bole:13
            g_row = g_now.to(tl.float32)
            exp_g = tl.exp(g_row)
            gate = tl.where(value < D_V, exp_g, 1.0)
            # u: gated_oja.bole:14
            beta = tl.sum(tl.gather(beta_path, tl.full([1], step, tl.int32), 0))
            v_row = v_now.to(tl.float32)
            k_all = k_all_now.to(tl.float32)
            square_k = tl.sum(k_all * k_all)
            norm_k = tl.rsqrt(square_k + 1e-06)
            k_row = k_now.to(tl.float32)
            k_2 = norm_k * k_row
            scaled_k = beta * k_2
            u = scaled_k - beta * tl.sum(tile * (gate[:, None] * v_row[:, None]), axis=0)
            # new state: gated_oja.bole:15
            tile = tile * gate[:, None] + u[None, :] * v_row[:, None]
            if step == track_step:
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell,
                    tile.to(state_at.dtype.element_ty), mask=(value < D_V)[:, None],
                    eviction_policy="evict_first")
            g_now = g_next
            v_now = v_next
            k_all_now = k_all_next
            k_now = k_next
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell,
            tile.to(state_at.dtype.element_ty), mask=(value < D_V)[:, None], eviction_policy="evict_first")
