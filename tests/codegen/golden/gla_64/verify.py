@triton.jit
def verify(
    cu_nodes, ancestors, q, q_stride, k, k_stride, g, g_stride, folded, rows, capacity, signals, slots, v,
    v_stride, state, state_stride, out, out_stride,
):
    """The first programs prepare; the others take a value tile each."""
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    requests = tl.num_programs(0) // (PREPARING + KEY_HEADS * GROUP * VALUE_TILES)
    ready = requests * PREPARING
    if program < ready:
        one_preparation(program, cu_nodes, ancestors, q, q_stride, k, k_stride, g, g_stride, folded, rows,
            capacity, signals)
    else:
        one_tile(program - ready, cu_nodes, signals, slots, v, v_stride, state, state_stride, folded, rows,
            capacity, ancestors, out, out_stride)


