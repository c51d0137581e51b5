@triton.jit
def verify(
    cu_nodes, A_log, b, b_stride, q, q_stride, k, k_stride, f, f_stride, v, v_stride, dt_bias, products,
    capacity, ancestors, depths, rows, folded, signals, slots, state, state_stride, out, out_stride,
):
    """The first programs prepare, the next compute the factors of a head each; the others take a value tile each."""
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    requests = tl.num_programs(0) // (PREPARING + VALUE_HEADS * (1 + VALUE_TILES))
    ready = requests * PREPARING
    if program < ready:
        one_preparation(program, cu_nodes, A_log, b, b_stride, q, q_stride, k, k_stride, f, f_stride, v,
            v_stride, dt_bias, products, capacity, ancestors, depths, rows, folded, signals)
    else:
        later = program - ready
        systems = requests * VALUE_HEADS
        if later < systems:
            one_system(later, cu_nodes, signals, ancestors, products, capacity, rows, folded)
        else:
            one_tile(later - systems, cu_nodes, signals, slots, v, v_stride, state, state_stride, rows,
                capacity, folded, out, out_stride)


