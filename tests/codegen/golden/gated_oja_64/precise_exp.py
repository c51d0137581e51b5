@triton.jit
def precise_exp(x):
    """exp(x) with an error below one unit in the last place; the GPU's own is off by several."""
    x = tl.where(x < -150.0, -150.0, tl.where(x > 150.0, 150.0, x))
    n = tl.floor(x * 1.4426950408889634 + 0.5)
    # x = n log 2 + r, log 2 in two parts, of which the first times n is exact
    r = (x - n * 0.693145751953125) - n * 1.428606820309417e-06
    p = 0.001388888888888889 + r * 0.0001984126984126984
    p = 0.041666666666666664 + r * (0.008333333333333333 + r * p)
    return tl.exp2(n) * (1.0 + r * (1.0 + r * (0.5 + r * (0.16666666666666666 + r * p))))



