@triton.jit
def commit(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    state_stride, w_stride, k_stride, v_stride, a_stride,
):
    """Advance state and convolution window along the accepted path; all layers in one launch."""
    program = tl.program_id(0)
    unit = program % 4
    request = program // 4 % batch
    layer = program // (4 * batch)
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
        head = unit // 1
        key_head = head
        value = unit % 1 * 64 + tl.arange(0, 64)
        key = tl.arange(0, 4)[:, None] * 16 + tl.arange(0, 16)[None, :]
        state_at = tl.multiple_of(tl.load(table + layer * 8 + 0).to(tl.pointer_type(tl.float32)), 16)
        # [key pieces, rows, keys of a piece]: the hint has lanes lie along rows next
        cell = tl.max_contiguous((head * D_V + value)[None, :, None] * D_K + key[:, None, :], (1, 2, 16))
        tile = tl.load(state_at + slot.to(tl.int64) * state_stride + cell,
            eviction_policy="evict_first").to(tl.float32)
        r_at = tl.multiple_of(tl.load(table + layer * 8 + 1).to(tl.pointer_type(tl.bfloat16)), 16)
        w_at = tl.multiple_of(tl.load(table + layer * 8 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
        k_at = tl.multiple_of(tl.load(table + layer * 8 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
        v_at = tl.multiple_of(tl.load(table + layer * 8 + 4).to(tl.pointer_type(tl.bfloat16)), 16)
        a_at = tl.multiple_of(tl.load(table + layer * 8 + 5).to(tl.pointer_type(tl.bfloat16)), 16)
        k_k_at = tl.multiple_of(tl.load(table + layer * 8 + 6).to(tl.pointer_type(tl.float32)), 16)
        k_k_head = tl.load(k_k_at + key_head * D_K + key)
        k_a_at = tl.multiple_of(tl.load(table + layer * 8 + 7).to(tl.pointer_type(tl.float32)), 16)
        k_a_head = tl.load(k_a_at + key_head * D_K + key)
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
        w_now = tl.load(w_at + row * w_stride + key_head * D_K + key)
        k_now = tl.load(k_at + row * k_stride + key_head * D_K + key)
        v_now = tl.load(v_at + row * v_stride + head * D_V + value)
        a_now = tl.load(a_at + row * a_stride + key_head * D_K + key)
        for step in range(length):
            row = first + tl.sum(tl.gather(nodes, tl.full([1], tl.minimum(step + 1, 15), tl.int32), 0))
            w_next = tl.load(w_at + row * w_stride + key_head * D_K + key)
            k_next = tl.load(k_at + row * k_stride + key_head * D_K + key)
            v_next = tl.load(v_at + row * v_stride + head * D_V + value)
            a_next = tl.load(a_at + row * a_stride + key_head * D_K + key)
            # one token of the recurrence
            # decay: rwkv7.bole:12
            w_row = w_now.to(tl.float32)
            sigmoid_w = 1.0 / (1.0 + tl.exp(-w_row))
            scaled_w = 0.6065306597126334 * sigmoid_w
            some_w = -scaled_w
            decay = tl.exp(some_w)
            # u: rwkv7.bole:13
            k_row = k_now.to(tl.float32)
            scaled_k = k_row * k_k_head
            square_k = tl.sum(scaled_k * scaled_k)
            rsqrt_k = tl.rsqrt(square_k + 1e-06)
            u = 0.0 - rsqrt_k * tl.sum(tl.sum(tile * scaled_k[:, None, :], axis=0), axis=1)
            # new state: rwkv7.bole:13
            v_row = v_now.to(tl.float32)
            kappa = rsqrt_k * scaled_k
            a_row = a_now.to(tl.float32)
            a_2 = 1.0 / (1.0 + tl.exp(-a_row))
            scaled_k_2 = kappa * a_2
            scaled_a = a_2 * k_a_head
            some_a = 1.0 + scaled_a
            some_a_2 = some_a - k_a_head
            k_2 = k_row * some_a_2
            tile = (tile * decay[:, None, :] + u[None, :, None] * scaled_k_2[:, None, :]
                + v_row[None, :, None] * k_2[:, None, :])
            if step == track_step:
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell,
                    tile.to(state_at.dtype.element_ty), eviction_policy="evict_first")
            w_now = w_next
            k_now = k_next
            v_now = v_next
            a_now = a_next
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell,
            tile.to(state_at.dtype.element_ty), eviction_policy="evict_first")
