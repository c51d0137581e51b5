@triton.jit
def record(
    table, batch, cu_nodes, slots, target_slots, track_slots, track_nodes, accepted, ancestors, depths,
    recorded_stride, a_stride, b_stride, window_stride, q_stride, k_stride, v_stride, near,
):
    """Keep the tokens of the accepted path for the next verification; move the window."""
    program = tl.program_id(0)
    unit = program % 90
    request = program // 90 % batch
    layer = program // (90 * batch)
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
    if (unit < 26) & valid:
        pending_at = tl.multiple_of(tl.load(table + layer * 12 + 11).to(tl.pointer_type(tl.int32)), 16)
        recorded_at = tl.multiple_of(tl.load(table + layer * 12 + 10).to(tl.pointer_type(tl.bfloat16)), 16)
        if unit == 0:
            place = tl.arange(0, 256)
            tl.store(pending_at + slot.to(tl.int64) * 256 + place, length, mask=place < 256)
        kept = recorded_at + slot.to(tl.int64) * recorded_stride
        a_at = tl.multiple_of(tl.load(table + layer * 12 + 1).to(tl.pointer_type(tl.bfloat16)), 16)
        b_at = tl.multiple_of(tl.load(table + layer * 12 + 2).to(tl.pointer_type(tl.bfloat16)), 16)
        mixed_at = tl.multiple_of(tl.load(table + layer * 12 + 3).to(tl.pointer_type(tl.bfloat16)), 16)
        for start_position in range(0, length, 16):
            position = start_position + tl.arange(0, 16)
            bit = tl.arange(0, 64)
            node = bit
            on_path = ((path_0 >> bit.to(tl.int64)) & 1) != 0
            depth = tl.load(depths + first + node, mask=on_path, other=-1)
            node_there = tl.sum(tl.where(depth[None, :] == position[:, None], node[None, :], 0), axis=1)
            row = first + node_there
            if unit < 1:
                # rows of a
                column = unit * 256 + tl.arange(0, 256)
                live = (position < length)[:, None] & (column < 32)[None, :]
                entries = tl.load(a_at + row[:, None] * a_stride + column[None, :], mask=live, other=0.0)
                tl.store(kept + position[:, None] * RECORDED + column[None, :], entries, mask=live)
            if (unit >= 1) & (unit < 2):
                # rows of b
                column = (unit - 1) * 256 + tl.arange(0, 256)
                live = (position < length)[:, None] & (column < 32)[None, :]
                entries = tl.load(b_at + row[:, None] * b_stride + column[None, :], mask=live, other=0.0)
                tl.store(kept + position[:, None] * RECORDED + 32 + column[None, :], entries, mask=live)
            if (unit >= 2) & (unit < 10):
                # rows of k
                column = (unit - 2) * 256 + tl.arange(0, 256)
                live = (position < length)[:, None] & (column < 2048)[None, :]
                entries = tl.load(mixed_at + row[:, None] * KEPT_CHANNELS + column[None, :], mask=live,
                    other=0.0)
                tl.store(kept + position[:, None] * RECORDED + 64 + column[None, :], entries, mask=live)
            if (unit >= 10) & (unit < 26):
                # rows of v
                column = (unit - 10) * 256 + tl.arange(0, 256)
                live = (position < length)[:, None] & (column < 4096)[None, :]
                entries = tl.load(mixed_at + row[:, None] * KEPT_CHANNELS + 2048 + column[None, :],
                    mask=live, other=0.0)
                tl.store(kept + position[:, None] * RECORDED + 2112 + column[None, :], entries, mask=live)
    if (unit >= 26) & valid:
        window_at = tl.multiple_of(tl.load(table + layer * 12 + 9).to(tl.pointer_type(tl.bfloat16)), 16)
        # the track node counts where it lies on the path
        tracked = (track_slot >= 0) & (track_node >= 0) & (track_node < count)
        bit = tl.where(tracked, track_node, 0)
        tracked = tracked & (((tl.load(ancestors + last) >> (bit & 63).to(tl.int64)) & 1) != 0)
        if (unit >= 26) & (unit < 90):
            # window of q, k, v
            part = unit - 26
            column = (part - tl.where(part < 16, 0, tl.where(part < 32, 16, 32))) * 128 + tl.arange(0, 128)
            channels = tl.where(part < 32, 2048, 4096)
            place = (tl.where(part < 16, 0, tl.where(part < 32, 2048, 4096)) + column) * 3
            source = tl.multiple_of(tl.load(table + layer * 12
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


