@triton.jit
def verify(
    cu_nodes, ancestors, A_log, dt_bias, D, dt, dt_stride, C, C_stride, B, B_stride, rows, capacity, folded,
    signals, slots, x, x_stride, state, state_stride, out, out_stride,
):
    """Factors of the heads by the first programs; the others take a value tile each."""
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    systems = tl.num_programs(0) // (1 + VALUE_TILES)
    if program < systems:
        one_system(program, cu_nodes, ancestors, A_log, dt_bias, D, dt, dt_stride, C, C_stride, B, B_stride,
            rows, capacity, folded, signals)
    else:
        one_tile(program - systems, cu_nodes, signals, slots, x, x_stride, state, state_stride, C, C_stride,
            B, B_stride, folded, rows, capacity, ancestors, out, out_stride)


