@triton.jit
def flush(table, batch, slots, recorded_stride, state_stride):
    """Walk the recorded tokens of some slots in all layers, for whoever reads states."""
    program = tl.program_id(0)
    value_tile = program % VALUE_TILES
    head = program // VALUE_TILES % VALUE_HEADS
    request = program // 64 % batch
    layer = program // (64 * batch)
    slot = tl.load(slots + request)
    state_at = tl.multiple_of(tl.load(table + layer * 12 + 0).to(tl.pointer_type(tl.float32)), 16)
    pending_at = tl.multiple_of(tl.load(table + layer * 12 + 11).to(tl.pointer_type(tl.int32)), 16)
    recorded_at = tl.multiple_of(tl.load(table + layer * 12 + 10).to(tl.pointer_type(tl.bfloat16)), 16)
    A_log_at = tl.multiple_of(tl.load(table + layer * 12 + 4).to(tl.pointer_type(tl.float32)), 16)
    dt_bias_at = tl.multiple_of(tl.load(table + layer * 12 + 5).to(tl.pointer_type(tl.float32)), 16)
    waiting = pending_at + tl.maximum(slot, 0).to(tl.int64) * 256 + head * 8 + value_tile * (B_V // 16)
    steps = tl.load(waiting, mask=slot >= 0, other=0)
    tokens = recorded_at + tl.maximum(slot, 0).to(tl.int64) * recorded_stride
    if steps > 0:
        value = value_tile * B_V + tl.arange(0, B_V)
        state_row = state_at + slot.to(tl.int64) * state_stride + (head * D_V + value) * D_K
        tile_key = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
        tile_at = tl.max_contiguous(state_row[None, :, None] + tile_key[:, None, :], (1, 2, 32))
        state_tile = tl.load(tile_at)
        state_tile = replay(state_tile, value, head, tokens, steps, A_log_at, dt_bias_at)
        tl.store(tile_at, state_tile)
        # all threads have read the count, and see what was stored
        tl.debug_barrier()
        count_at = tl.arange(0, B_V // 16)
        tl.store(waiting + count_at, 0)
