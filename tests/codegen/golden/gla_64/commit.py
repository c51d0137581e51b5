@triton.jit
def commit(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    state_stride, g_stride, v_stride, k_stride,
):
    """Advance state and convolution window along the accepted path; all layers in one launch."""
    program = tl.program_id(0)
    unit = program % 64
    request = program // 64 % batch
    layer = program // (64 * batch)
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
        value = unit % 2 * 64 + tl.arange(0, 64)
        key = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
        state_at = tl.multiple_of(tl.load(table + layer * 5 + 0).to(tl.pointer_type(tl.float32)), 16)
        # [key pieces, rows, keys of a piece]: the hint has lanes lie along rows next
        cell = tl.max_contiguous((head * D_V + value)[None, :, None] * D_K + key[:, None, :], (1, 2, 32))
        tile = tl.load(state_at + slot.to(tl.int64) * state_stride + cell,
            eviction_policy="evict_first").to(tl.float32)
        q_at = tl.multiple_of(tl.load(table + layer * 5 + 1).to(tl.pointer_type(tl.bfloat16)), 16)
        k_at = tl.multiple_of(tl.load(table + layer * 5 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
        v_at = tl.multiple_of(tl.load(table + layer * 5 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
        g_at = tl.multiple_of(tl.load(table + layer * 5 + 4).to(tl.pointer_type(tl.bfloat16)), 16)
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
        g_now = tl.load(g_at + row * g_stride + key_head * D_K + key)
        v_now = tl.load(v_at + row * v_stride + head * D_V + value)
        k_now = tl.load(k_at + row * k_stride + key_head * D_K + key)
        for step in range(length):
            row = first + tl.sum(tl.gather(nodes, tl.full([1], tl.minimum(step + 1, 15), tl.int32), 0))
            g_next = tl.load(g_at + row * g_stride + key_head * D_K + key)
            v_next = tl.load(v_at + row * v_stride + head * D_V + value)
            k_next = tl.load(k_at + row * k_stride + key_head * D_K + key)
            # one token of the recurrence
            # decay: gla.bole:9
            g_row = g_now.to(tl.float32)
            exp_g = tl.exp(g_row)
            # new state: gla.bole:9
            v_row = v_now.to(tl.float32)
            k_row = k_now.to(tl.float32)
            tile = tile * exp_g[:, None, :] + v_row[None, :, None] * k_row[:, None, :]
            if step == track_step:
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell,
                    tile.to(state_at.dtype.element_ty), eviction_policy="evict_first")
            g_now = g_next
            v_now = v_next
            k_now = k_next
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell,
            tile.to(state_at.dtype.element_ty), eviction_policy="evict_first")
