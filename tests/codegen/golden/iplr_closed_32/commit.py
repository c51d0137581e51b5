@triton.jit
def commit(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    state_stride, v_stride, k_stride, a_stride, b_stride,
):
    """Advance state and convolution window along the accepted path; all layers in one launch."""
    program = tl.program_id(0)
    unit = program % 8
    request = program // 8 % batch
    layer = program // (8 * batch)
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
        key_c0 = tl.arange(0, 32)
        key_c1 = 32 + tl.arange(0, 32)
        channel = tl.arange(0, 4)[:, None] * 8 + tl.arange(0, 8)[None, :]
        # [rows, key groups, keys of a group]: lanes lie as products have them
        cell = tl.max_contiguous((head * D_V + value)[:, None, None] * D_K + channel[None, :, :], (1, 1, 2))
        steps = tl.arange(0, 32)
        # the node of a step: the bit with as many bits of the path below it
        below = steps
        low_bits = path_0.to(tl.int32)
        low_pairs = low_bits - ((low_bits >> 1) & 0x55555555)
        low_fours = (low_pairs & 0x33333333) + ((low_pairs >> 2) & 0x33333333)
        low_bytes = (low_fours + (low_fours >> 4)) & 0x0F0F0F0F
        counted = (low_bytes + (low_bytes >> 8)) & 31
        beyond = below >= counted
        below = tl.where(beyond, below - counted, below)
        bit = tl.where(beyond, 16, 0)
        counted = (low_bytes >> bit) & 15
        beyond = below >= counted
        below = tl.where(beyond, below - counted, below)
        bit = tl.where(beyond, bit + 8, bit)
        counted = (low_fours >> bit) & 7
        beyond = below >= counted
        below = tl.where(beyond, below - counted, below)
        bit = tl.where(beyond, bit + 4, bit)
        counted = (low_pairs >> bit) & 3
        beyond = below >= counted
        below = tl.where(beyond, below - counted, below)
        bit = tl.where(beyond, bit + 2, bit)
        counted = (low_bits >> bit) & 1
        beyond = below >= counted
        below = tl.where(beyond, below - counted, below)
        bit = tl.where(beyond, bit + 1, bit)
        # gathered: else all lanes that need an entry would find it again
        nodes = tl.gather(tl.where(steps < length, bit, 0), steps, 0)
        track_step = tl.max(tl.where((nodes == track_node) & (steps < length) & (track_slot >= 0), steps, -1))
        state_at = tl.multiple_of(tl.load(table + layer * 6 + 0).to(tl.pointer_type(tl.float32)), 16)
        state_c0 = tl.reshape(tl.load(state_at + slot.to(tl.int64) * state_stride + cell,
            mask=(value < D_V)[:, None, None], other=0.0, eviction_policy="evict_first").to(tl.float32),
            (32, 32))
        state_c1 = tl.reshape(tl.load(state_at + slot.to(tl.int64) * state_stride + cell + 32,
            mask=(value < D_V)[:, None, None] & (channel < D_K - 32)[None, :, :], other=0.0,
            eviction_policy="evict_first").to(tl.float32), (32, 32))
        for begin in range(0, length, 16):
            place = tl.arange(0, 16)
            tokens = tl.minimum(length - begin, 16)
            node = tl.gather(nodes, tl.minimum(begin + place, 31), 0)
            inside = place < tokens
            v_at = tl.multiple_of(tl.load(table + layer * 6 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
            v_rows = v_at + first * v_stride + head * D_V
            v_step = v_stride.to(tl.int32)
            v_tile = tl.load(v_rows + (node * v_step)[None, :] + value[:, None],
                mask=inside[None, :] & (value < D_V)[:, None], other=0.0)
            k_at = tl.multiple_of(tl.load(table + layer * 6 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
            k_rows = k_at + first * k_stride + key_head * D_K
            k_step = k_stride.to(tl.int32)
            k_tile_c0 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :], mask=inside[:, None],
                other=0.0)
            k_tile_c1 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :],
                mask=inside[:, None] & (key_c1 < D_K)[None, :], other=0.0)
            a_at = tl.multiple_of(tl.load(table + layer * 6 + 4).to(tl.pointer_type(tl.bfloat16)), 16)
            a_rows = a_at + first * a_stride + key_head * D_K
            a_step = a_stride.to(tl.int32)
            a_tile_c0 = tl.load(a_rows + (node * a_step)[:, None] + key_c0[None, :], mask=inside[:, None],
                other=0.0)
            a_tile_c1 = tl.load(a_rows + (node * a_step)[:, None] + key_c1[None, :],
                mask=inside[:, None] & (key_c1 < D_K)[None, :], other=0.0)
            b_at = tl.multiple_of(tl.load(table + layer * 6 + 5).to(tl.pointer_type(tl.bfloat16)), 16)
            b_rows = b_at + first * b_stride + key_head * D_K
            b_step = b_stride.to(tl.int32)
            b_tile_c0 = tl.load(b_rows + (node * b_step)[:, None] + key_c0[None, :], mask=inside[:, None],
                other=0.0)
            b_tile_c1 = tl.load(b_rows + (node * b_step)[:, None] + key_c1[None, :],
                mask=inside[:, None] & (key_c1 < D_K)[None, :], other=0.0)
            v_f32 = v_tile.to(tl.float32)
            scale = tl.full([16], -1.0, tl.float32)
            gram_a_b = tl.dot(a_tile_c0, tl.trans(b_tile_c0))
            gram_a_b = tl.dot(a_tile_c1, tl.trans(b_tile_c1), gram_a_b)
            related = (place[None, :] <= place[:, None]) & inside[:, None]
            minus_g = tl.where(related & (node[:, None] > node[None, :]), -scale[:, None] * gram_a_b, 0.0)
            gram_a_k = tl.dot(a_tile_c0, tl.trans(k_tile_c0))
            gram_a_k = tl.dot(a_tile_c1, tl.trans(k_tile_c1), gram_a_k)
            minus_write_0 = tl.where(related & (node[:, None] > node[None, :]), -scale[:, None] * gram_a_k,
                0.0)
            state_c0_top = (state_c0.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
            state_c0_hi = state_c0_top.to(tl.bfloat16)
            state_c0_lo = (state_c0 - state_c0_top).to(tl.bfloat16)
            seen = tl.dot(state_c0_lo, tl.trans(a_tile_c0))
            seen = tl.dot(state_c0_hi, tl.trans(a_tile_c0), seen)
            state_c1_top = (state_c1.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
            state_c1_hi = state_c1_top.to(tl.bfloat16)
            state_c1_lo = (state_c1 - state_c1_top).to(tl.bfloat16)
            seen = tl.dot(state_c1_lo, tl.trans(a_tile_c1), seen)
            seen = tl.dot(state_c1_hi, tl.trans(a_tile_c1), seen)
            kept = scale
            # u: iplr.bole:8
            right = 0.0 - kept[None, :] * seen
            tracked = track_step - begin
            if (tracked >= 0) & (tracked < 16):
                # what comes behind the track node may be anything
                reach = place <= tracked
                tracked_g = tl.where(reach[:, None], minus_g, 0.0)
                # new state: iplr.bole:8
                value_0 = tl.where(reach[None, :], v_f32, 0.0)
                right_reached = tl.where(reach[None, :], right, 0.0)
                minus_reached = tl.where(reach[:, None], minus_write_0, 0.0)
                minus_reached_across = tl.trans(minus_reached)
                minus_reached_across_top = ((minus_reached_across.to(tl.int32, bitcast=True) + 0x8000)
                    & -0x10000).to(tl.float32, bitcast=True)
                minus_reached_across_hi = minus_reached_across_top.to(tl.bfloat16)
                minus_reached_across_rest = minus_reached_across - minus_reached_across_top
                minus_reached_across_mid = (minus_reached_across_rest.to(tl.int32, bitcast=True)
                    & -0x10000).to(tl.float32, bitcast=True)
                minus_reached_across_lo = minus_reached_across_mid.to(tl.bfloat16)
                minus_reached_across_last = (minus_reached_across_rest
                    - minus_reached_across_mid).to(tl.bfloat16)
                value_0_top = ((value_0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                    bitcast=True)
                value_0_hi = value_0_top.to(tl.bfloat16)
                value_0_rest = value_0 - value_0_top
                value_0_mid = (value_0_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                value_0_lo = value_0_mid.to(tl.bfloat16)
                value_0_last = (value_0_rest - value_0_mid).to(tl.bfloat16)
                right_reached = tl.dot(value_0_hi, minus_reached_across_last, right_reached)
                right_reached = tl.dot(value_0_lo, minus_reached_across_lo, right_reached)
                right_reached = tl.dot(value_0_last, minus_reached_across_hi, right_reached)
                right_reached = tl.dot(value_0_hi, minus_reached_across_lo, right_reached)
                right_reached = tl.dot(value_0_lo, minus_reached_across_hi, right_reached)
                right_reached = tl.dot(value_0_hi, minus_reached_across_hi, right_reached)
                tracked_g_across = tl.trans(tracked_g)
                tracked_g_across_top = ((tracked_g_across.to(tl.int32, bitcast=True) + 0x8000)
                    & -0x10000).to(tl.float32, bitcast=True)
                tracked_g_across_hi = tracked_g_across_top.to(tl.bfloat16)
                tracked_g_across_rest = tracked_g_across - tracked_g_across_top
                tracked_g_across_mid = (tracked_g_across_rest.to(tl.int32, bitcast=True)
                    & -0x10000).to(tl.float32, bitcast=True)
                tracked_g_across_lo = tracked_g_across_mid.to(tl.bfloat16)
                tracked_g_across_last = (tracked_g_across_rest - tracked_g_across_mid).to(tl.bfloat16)
                u = right_reached
                for _ in range(tracked):
                    u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
                    u_hi = u_top.to(tl.bfloat16)
                    u_rest = u - u_top
                    u_mid = (u_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
                    u_lo = u_mid.to(tl.bfloat16)
                    u_last = (u_rest - u_mid).to(tl.bfloat16)
                    u = tl.dot(u_hi, tracked_g_across_last, right_reached)
                    u = tl.dot(u_lo, tracked_g_across_lo, u)
                    u = tl.dot(u_last, tracked_g_across_hi, u)
                    u = tl.dot(u_hi, tracked_g_across_lo, u)
                    u = tl.dot(u_lo, tracked_g_across_hi, u)
                    u = tl.dot(u_hi, tracked_g_across_hi, u)
                written_u = tl.where(reach[None, :], u, 0.0)
                written_u_top = ((written_u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                    bitcast=True)
                written_u_hi = written_u_top.to(tl.bfloat16)
                written_u_rest = written_u - written_u_top
                written_u_mid = (written_u_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                written_u_lo = written_u_mid.to(tl.bfloat16)
                written_u_last = (written_u_rest - written_u_mid).to(tl.bfloat16)
                written_0 = tl.where(reach[None, :], value_0, 0.0)
                written_0_top = ((written_0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                    bitcast=True)
                written_0_hi = written_0_top.to(tl.bfloat16)
                written_0_rest = written_0 - written_0_top
                written_0_mid = (written_0_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                    bitcast=True)
                written_0_lo = written_0_mid.to(tl.bfloat16)
                written_0_last = (written_0_rest - written_0_mid).to(tl.bfloat16)
                # vectors again, from the cache: in registers they would crowd the state out
                b_tile_c0_2 = tl.load(b_rows + (node * b_step)[:, None] + key_c0[None, :],
                    mask=reach[:, None], other=0.0)
                tracked_state_c0 = tl.dot(written_u_last, b_tile_c0_2, state_c0)
                tracked_state_c0 = tl.dot(written_u_lo, b_tile_c0_2, tracked_state_c0)
                tracked_state_c0 = tl.dot(written_u_hi, b_tile_c0_2, tracked_state_c0)
                k_tile_c0_2 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :],
                    mask=reach[:, None], other=0.0)
                tracked_state_c0 = tl.dot(written_0_last, k_tile_c0_2, tracked_state_c0)
                tracked_state_c0 = tl.dot(written_0_lo, k_tile_c0_2, tracked_state_c0)
                tracked_state_c0 = tl.dot(written_0_hi, k_tile_c0_2, tracked_state_c0)
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell,
                    tl.reshape(tracked_state_c0, (32, 4, 8)).to(state_at.dtype.element_ty),
                    mask=(value < D_V)[:, None, None], eviction_policy="evict_first")
                b_tile_c1_2 = tl.load(b_rows + (node * b_step)[:, None] + key_c1[None, :],
                    mask=reach[:, None] & (key_c1 < D_K)[None, :], other=0.0)
                tracked_state_c1 = tl.dot(written_u_last, b_tile_c1_2, state_c1)
                tracked_state_c1 = tl.dot(written_u_lo, b_tile_c1_2, tracked_state_c1)
                tracked_state_c1 = tl.dot(written_u_hi, b_tile_c1_2, tracked_state_c1)
                k_tile_c1_2 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :],
                    mask=reach[:, None] & (key_c1 < D_K)[None, :], other=0.0)
                tracked_state_c1 = tl.dot(written_0_last, k_tile_c1_2, tracked_state_c1)
                tracked_state_c1 = tl.dot(written_0_lo, k_tile_c1_2, tracked_state_c1)
                tracked_state_c1 = tl.dot(written_0_hi, k_tile_c1_2, tracked_state_c1)
                tl.store(state_at + track_slot.to(tl.int64) * state_stride + cell + 32,
                    tl.reshape(tracked_state_c1, (32, 4, 8)).to(state_at.dtype.element_ty),
                    mask=(value < D_V)[:, None, None] & (channel < D_K - 32)[None, :, :],
                    eviction_policy="evict_first")
            final = tokens - 1
            # new state: iplr.bole:8
            value_0 = tl.where(inside[None, :], v_f32, 0.0)
            right_reached = tl.where(inside[None, :], right, 0.0)
            minus_write_0_across = tl.trans(minus_write_0)
            minus_write_0_across_top = ((minus_write_0_across.to(tl.int32, bitcast=True) + 0x8000)
                & -0x10000).to(tl.float32, bitcast=True)
            minus_write_0_across_hi = minus_write_0_across_top.to(tl.bfloat16)
            minus_write_0_across_rest = minus_write_0_across - minus_write_0_across_top
            minus_write_0_across_mid = (minus_write_0_across_rest.to(tl.int32, bitcast=True)
                & -0x10000).to(tl.float32, bitcast=True)
            minus_write_0_across_lo = minus_write_0_across_mid.to(tl.bfloat16)
            minus_write_0_across_last = (minus_write_0_across_rest - minus_write_0_across_mid).to(tl.bfloat16)
            value_0_top = ((value_0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                bitcast=True)
            value_0_hi = value_0_top.to(tl.bfloat16)
            value_0_rest = value_0 - value_0_top
            value_0_mid = (value_0_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
            value_0_lo = value_0_mid.to(tl.bfloat16)
            value_0_last = (value_0_rest - value_0_mid).to(tl.bfloat16)
            right_reached = tl.dot(value_0_hi, minus_write_0_across_last, right_reached)
            right_reached = tl.dot(value_0_lo, minus_write_0_across_lo, right_reached)
            right_reached = tl.dot(value_0_last, minus_write_0_across_hi, right_reached)
            right_reached = tl.dot(value_0_hi, minus_write_0_across_lo, right_reached)
            right_reached = tl.dot(value_0_lo, minus_write_0_across_hi, right_reached)
            right_reached = tl.dot(value_0_hi, minus_write_0_across_hi, right_reached)
            minus_g_across = tl.trans(minus_g)
            minus_g_across_top = ((minus_g_across.to(tl.int32, bitcast=True) + 0x8000)
                & -0x10000).to(tl.float32, bitcast=True)
            minus_g_across_hi = minus_g_across_top.to(tl.bfloat16)
            minus_g_across_rest = minus_g_across - minus_g_across_top
            minus_g_across_mid = (minus_g_across_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                bitcast=True)
            minus_g_across_lo = minus_g_across_mid.to(tl.bfloat16)
            minus_g_across_last = (minus_g_across_rest - minus_g_across_mid).to(tl.bfloat16)
            u = right_reached
            for _ in range(final):
                u_top = ((u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32, bitcast=True)
                u_hi = u_top.to(tl.bfloat16)
                u_rest = u - u_top
                u_mid = (u_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32, bitcast=True)
                u_lo = u_mid.to(tl.bfloat16)
                u_last = (u_rest - u_mid).to(tl.bfloat16)
                u = tl.dot(u_hi, minus_g_across_last, right_reached)
                u = tl.dot(u_lo, minus_g_across_lo, u)
                u = tl.dot(u_last, minus_g_across_hi, u)
                u = tl.dot(u_hi, minus_g_across_lo, u)
                u = tl.dot(u_lo, minus_g_across_hi, u)
                u = tl.dot(u_hi, minus_g_across_hi, u)
            written_u = tl.where(inside[None, :], u, 0.0)
            written_u_top = ((written_u.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                bitcast=True)
            written_u_hi = written_u_top.to(tl.bfloat16)
            written_u_rest = written_u - written_u_top
            written_u_mid = (written_u_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                bitcast=True)
            written_u_lo = written_u_mid.to(tl.bfloat16)
            written_u_last = (written_u_rest - written_u_mid).to(tl.bfloat16)
            written_0 = tl.where(inside[None, :], value_0, 0.0)
            written_0_top = ((written_0.to(tl.int32, bitcast=True) + 0x8000) & -0x10000).to(tl.float32,
                bitcast=True)
            written_0_hi = written_0_top.to(tl.bfloat16)
            written_0_rest = written_0 - written_0_top
            written_0_mid = (written_0_rest.to(tl.int32, bitcast=True) & -0x10000).to(tl.float32,
                bitcast=True)
            written_0_lo = written_0_mid.to(tl.bfloat16)
            written_0_last = (written_0_rest - written_0_mid).to(tl.bfloat16)
            # vectors again, from the cache: in registers they would crowd the state out
            b_tile_c0_2 = tl.load(b_rows + (node * b_step)[:, None] + key_c0[None, :], mask=inside[:, None],
                other=0.0)
            state_c0 = tl.dot(written_u_last, b_tile_c0_2, state_c0)
            state_c0 = tl.dot(written_u_lo, b_tile_c0_2, state_c0)
            state_c0 = tl.dot(written_u_hi, b_tile_c0_2, state_c0)
            k_tile_c0_2 = tl.load(k_rows + (node * k_step)[:, None] + key_c0[None, :], mask=inside[:, None],
                other=0.0)
            state_c0 = tl.dot(written_0_last, k_tile_c0_2, state_c0)
            state_c0 = tl.dot(written_0_lo, k_tile_c0_2, state_c0)
            state_c0 = tl.dot(written_0_hi, k_tile_c0_2, state_c0)
            b_tile_c1_2 = tl.load(b_rows + (node * b_step)[:, None] + key_c1[None, :],
                mask=inside[:, None] & (key_c1 < D_K)[None, :], other=0.0)
            state_c1 = tl.dot(written_u_last, b_tile_c1_2, state_c1)
            state_c1 = tl.dot(written_u_lo, b_tile_c1_2, state_c1)
            state_c1 = tl.dot(written_u_hi, b_tile_c1_2, state_c1)
            k_tile_c1_2 = tl.load(k_rows + (node * k_step)[:, None] + key_c1[None, :],
                mask=inside[:, None] & (key_c1 < D_K)[None, :], other=0.0)
            state_c1 = tl.dot(written_0_last, k_tile_c1_2, state_c1)
            state_c1 = tl.dot(written_0_lo, k_tile_c1_2, state_c1)
            state_c1 = tl.dot(written_0_hi, k_tile_c1_2, state_c1)
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell,
            tl.reshape(state_c0, (32, 4, 8)).to(state_at.dtype.element_ty),
            mask=(value < D_V)[:, None, None], eviction_policy="evict_first")
        tl.store(state_at + target_slot.to(tl.int64) * state_stride + cell + 32,
            tl.reshape(state_c1, (32, 4, 8)).to(state_at.dtype.element_ty),
            mask=(value < D_V)[:, None, None] & (channel < D_K - 32)[None, :, :],
            eviction_policy="evict_first")
