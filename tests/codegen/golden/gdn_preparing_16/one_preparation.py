@triton.jit
def one_preparation(
    program, cu_nodes, A_log, dt_bias, a, a_stride, b, b_stride, ancestors, capacity, rows, near, slots, q, k,
    v, q_stride, k_stride, v_stride, passing, mixed, conv_weight, window, window_stride, signals,
):
    """Before the tree is solved: convolutions along the paths, norms, gates and their sums along the paths."""
    task = program % 68
    request = program // 68
    start = tl.load(cu_nodes + request)
    count = tl.minimum(tl.load(cu_nodes + request + 1) - start, MAX_NODES)
    first = start.to(tl.int64)
    if task < 4:
        # row scalars, sums along the paths of some value heads
        lane = tl.arange(0, 128)
        unit = (task) * 8 + lane // 16
        node = lane % 16
        inside = node < count
        row = first + node
        head = unit
        A_log_head = tl.load(A_log + head)
        dt_bias_head = tl.load(dt_bias + head)
        a_rows = a + first * a_stride + head
        a_step = a_stride.to(tl.int32)
        a_row = tl.load(a_rows + node * a_step, mask=inside, other=0.0).to(tl.float32)
        b_rows = b + first * b_stride + head
        b_step = b_stride.to(tl.int32)
        b_row = tl.load(b_rows + node * b_step, mask=inside, other=0.0).to(tl.float32)
        # without the bit below the highest, rounding to a float keeps the exponent
        own = 1 << (node & 63).to(tl.int64)
        left_0 = tl.load(ancestors + first + node, mask=inside, other=0) & ~own
        parent = tl.where(left_0 != 0,
            ((left_0 & ~(left_0 >> 1)).to(tl.float32).to(tl.int32, bitcast=True) >> 23) - 127, -1)
        link = tl.where(parent < 0, -1, lane - node + parent)
        # beta: gdn.bole:13
        beta = tl.where(inside, 1.0 / (1.0 + tl.exp(-b_row)), 0.0)
        tl.store(rows + head * capacity + row, beta, mask=inside)
        # log-decay g, and c its sum over the path: gdn.bole:12
        exp_A_log = tl.exp(A_log_head)
        softplus_argument = a_row + dt_bias_head
        softplus_part = tl.exp2(tl.abs(softplus_argument) * -1.4426950408889634)
        softplus_a = (tl.maximum(softplus_argument, 0.0) + softplus_part
            * (0.99999994 + softplus_part
            * (-0.49999493 + softplus_part
            * (0.33319086 + softplus_part
            * (-0.24842922 + softplus_part
            * (0.19105825 + softplus_part
            * (-0.13662934 + softplus_part
            * (0.07822299 + softplus_part * (-0.029503778 + softplus_part * 0.0052324063)))))))))
        g = tl.where(inside, -(exp_A_log * softplus_a), 0.0) * 1.4426950408889634
        g = tl.where(g < -4096.0, -4096.0, g)
        c = tl.floor(g * 8.0 + 0.5) * 0.125
        c_rest = g - c
        for _ in tl.static_range(3):
            linked = link >= 0
            end = tl.maximum(link, 0)
            c = c + tl.where(linked, tl.gather(c, end, axis=0), 0.0)
            c_rest = c_rest + tl.where(linked, tl.gather(c_rest, end, axis=0), 0.0)
            link = tl.where(linked, tl.gather(link, end, axis=0), -1)
        tl.store(rows + (4 * VALUE_HEADS + head) * capacity + row, c, mask=inside)
        tl.store(rows + (5 * VALUE_HEADS + head) * capacity + row, c_rest, mask=inside)
    if (task >= 4) & (task < 68):
        # q, k, v: convolution, then silu
        unit = task - 4
        node = tl.arange(0, 16)
        inside = node < count
        row = first + node
        head = unit - tl.where(unit < 16, 0, tl.where(unit < 32, 16, 32))
        channel = tl.arange(0, 128)
        packed = unit * 128
        # loads first, those of addresses before all: else each waits for the one before
        slot = tl.maximum(tl.load(slots + request), 0).to(tl.int64)
        near_0 = tl.load(near + row * 3, mask=inside, other=-1)
        near_1 = tl.load(near + row * 3 + 1, mask=inside, other=-1)
        near_2 = tl.load(near + row * 3 + 2, mask=inside, other=-1)
        source = tl.multiple_of(tl.where(unit < 16, q, tl.where(unit < 32, k, v)), 16)
        source_stride = tl.multiple_of(tl.where(unit < 16, q_stride,
            tl.where(unit < 32, k_stride, v_stride)), 16)
        from_rows = source + first * source_stride + head * 128
        from_step = source_stride.to(tl.int32)
        stored_in = tl.multiple_of(tl.where(unit < 16, passing, mixed), 16)
        stored_step = tl.multiple_of(tl.where(unit < 16, PASSING_CHANNELS, KEPT_CHANNELS), 16)
        column = tl.multiple_of(tl.where(unit < 32, 0, 2048), 16)
        to_rows = stored_in + first * stored_step + column + head * 128
        own = tl.load(from_rows + ((node * from_step)[:, None] + channel[None, :]), mask=inside[:, None],
            other=0.0)
        tap_0 = tl.load(from_rows + ((near_0 * from_step)[:, None] + channel[None, :]),
            mask=(near_0 >= 0)[:, None], other=0.0)
        tap_1 = tl.load(from_rows + ((near_1 * from_step)[:, None] + channel[None, :]),
            mask=(near_1 >= 0)[:, None], other=0.0)
        tap_2 = tl.load(from_rows + ((near_2 * from_step)[:, None] + channel[None, :]),
            mask=(near_2 >= 0)[:, None], other=0.0)
        # rows of weights by threads of their own, which then share the columns with all
        lane = tl.arange(0, 4)[None, :]
        channels = (packed + channel)[:, None]
        weights = tl.load(conv_weight + channels * 4 + lane)
        window_rows = window + slot * window_stride + channels * 3 + lane
        old_0 = tl.load(window_rows, mask=lane < 3, other=0.0)
        old_1 = tl.load(window_rows + 1, mask=lane < 2, other=0.0)
        old_2 = tl.load(window_rows + 2, mask=lane < 1, other=0.0)
        weights = weights.to(tl.float32)
        weight_0 = tl.sum(tl.where(lane == 3, weights, 0.0), axis=1)
        weight_1 = tl.sum(tl.where(lane == 2, weights, 0.0), axis=1)
        weight_2 = tl.sum(tl.where(lane == 1, weights, 0.0), axis=1)
        weight_3 = tl.sum(tl.where(lane == 0, weights, 0.0), axis=1)
        window_0 = tl.sum(weights * old_0.to(tl.float32), axis=1)
        window_1 = tl.sum(weights * old_1.to(tl.float32), axis=1)
        window_2 = tl.sum(weights * old_2.to(tl.float32), axis=1)
        total = weight_0[None, :] * own.to(tl.float32)
        total = total + weight_1[None, :] * tap_0.to(tl.float32)
        total = total + weight_2[None, :] * tap_1.to(tl.float32)
        total = total + weight_3[None, :] * tap_2.to(tl.float32)
        # a short path goes on in the committed window
        ends = near_0 < 0
        total = tl.where(ends[:, None], total + window_0[None, :], total)
        ends = (near_0 >= 0) & (near_1 < 0)
        total = tl.where(ends[:, None], total + window_1[None, :], total)
        ends = (near_1 >= 0) & (near_2 < 0)
        total = tl.where(ends[:, None], total + window_2[None, :], total)
        total = (total * tl.rsqrt(1.0 + tl.exp2(total * -1.4426950408889634))
            * tl.rsqrt(1.0 + tl.exp2(total * -1.4426950408889634)))
        stored = total.to(passing.dtype.element_ty)
        tl.store(to_rows + ((node * stored_step)[:, None] + channel[None, :]), stored, mask=inside[:, None])
        if unit < 16:
            value = stored.to(tl.float32)
            # norm_q: gdn.bole:10
            square_q = tl.sum(value * value, axis=1)
            norm_q = tl.rsqrt(square_q + 1e-06)
            tl.store(rows + (2 * VALUE_HEADS + head) * capacity + row, norm_q, mask=inside)
        if (unit >= 16) & (unit < 32):
            value = stored.to(tl.float32)
            # norm_k: gdn.bole:11
            square_k = tl.sum(value * value, axis=1)
            norm_k = tl.rsqrt(square_k + 1e-06)
            tl.store(rows + (VALUE_HEADS + head) * capacity + row, norm_k, mask=inside)
        if unit >= 32:
            value = stored.to(tl.float32)
            guard_v = tl.sum(value * value, axis=1)
            tl.store(rows + (3 * VALUE_HEADS + head) * capacity + row, guard_v, mask=inside)

    # all threads have stored: one program less that others of the request wait for
    tl.debug_barrier()
    tl.atomic_add(signals + request * SIGNALS, 1, sem="release")


