@triton.jit
def replay(state_tile, channels, value_head, tokens, steps, A_log, dt_bias):
    """The state tile after the recorded tokens."""
    tile = state_tile
    value = channels
    head = value_head
    key = tl.arange(0, 4)[:, None] * 32 + tl.arange(0, 32)[None, :]
    key_head = head // GROUP
    A_log_head = tl.load(A_log + head)
    dt_bias_head = tl.load(dt_bias + head)
    # the rows of the next token are on their way while a token is worked on
    row = tokens
    a_now = tl.load(row + head)
    b_now = tl.load(row + 32 + head)
    k_now = tl.load(row + 64 + key_head * D_K + key)
    v_now = tl.load(row + 2112 + head * D_V + value)
    step = 0
    owed = tl.full([], 1.0, tl.float32)
    while step < steps:
        step = step + 1
        row = tokens + tl.minimum(step, steps - 1) * RECORDED
        a_next = tl.load(row + head)
        b_next = tl.load(row + 32 + head)
        k_next = tl.load(row + 64 + key_head * D_K + key)
        v_next = tl.load(row + 2112 + head * D_V + value)
        # one token of the recurrence
        # decay: gdn.bole:12
        exp_A_log = tl.exp(A_log_head)
        a_row = a_now.to(tl.float32)
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
        owed = owed * tl.exp(-(exp_A_log * softplus_a))
        if (owed < 1.52587890625e-05) | (owed > 65536.0):
            # rare: the barrier keeps it a branch, else each step would multiply
            tl.debug_barrier()
            tile = tile * owed
            owed = tl.full([], 1.0, tl.float32)
        paid = 1.0 / owed
        # u: gdn.bole:15
        b_row = b_now.to(tl.float32)
        beta = 1.0 / (1.0 + tl.exp(-b_row))
        k_row = k_now.to(tl.float32)
        square_k = tl.sum(k_row * k_row)
        norm_k = tl.rsqrt(square_k + 1e-06)
        v_row = v_now.to(tl.float32)
        scaled_v = beta * v_row
        u = scaled_v - owed * beta * norm_k * tl.sum(tl.sum(tile * k_row[:, None, :], axis=0), axis=1)
        # new state: gdn.bole:16
        written_u = paid * norm_k * u
        tile = tile + written_u[None, :, None] * k_row[:, None, :]
        a_now = a_next
        b_now = b_next
        k_now = k_next
        v_now = v_next
    return tile * owed


