@triton.jit
def verify(
    cu_nodes, A_log, dt_bias, a, a_stride, b, b_stride, ancestors, capacity, rows, near, slots, q, k, v,
    q_stride, k_stride, v_stride, passing, mixed, conv_weight, window, window_stride, signals, folded, state,
    state_stride, out, out_stride,
):
    """The first programs prepare, the next compute the factors of a head each; the others take a value tile each."""
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    requests = tl.num_programs(0) // (PREPARING + VALUE_HEADS * (1 + VALUE_TILES))
    ready = requests * PREPARING
    if program < ready:
        one_preparation(program, cu_nodes, A_log, dt_bias, a, a_stride, b, b_stride, ancestors, capacity,
            rows, near, slots, q, k, v, q_stride, k_stride, v_stride, passing, mixed, conv_weight, window,
            window_stride, signals)
    else:
        later = program - ready
        systems = requests * VALUE_HEADS
        if later < systems:
            one_system(later, cu_nodes, signals, ancestors, rows, capacity, passing, mixed, folded)
        else:
            one_tile(later - systems, cu_nodes, signals, slots, state, state_stride, mixed, passing, folded,
                rows, capacity, out, out_stride)


