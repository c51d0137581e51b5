@triton.jit
def verify(
    cu_nodes, ancestors, rows, capacity, passing, mixed, folded, signals, slots, state, state_stride, out,
    out_stride,
):
    """Factors of the heads by the first programs; the others take a value tile each."""
    tl.extra.cuda.gdc_wait()
    tl.extra.cuda.gdc_launch_dependents()
    program = tl.program_id(0)
    systems = tl.num_programs(0) // (1 + VALUE_TILES)
    if program < systems:
        one_system(program, cu_nodes, ancestors, rows, capacity, passing, mixed, folded, signals)
    else:
        one_tile(program - systems, cu_nodes, signals, slots, mixed, state, state_stride, passing, folded,
            rows, capacity, out, out_stride)


