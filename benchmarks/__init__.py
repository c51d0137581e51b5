"""Side-by-side measurements of tree verification on a GPU, with every peer in the same process.

This folder is not part of the installed package. `python -m benchmarks.run --help` starts here;
`python -m benchmarks.fetch_peers` gets the public kernels that boleir is compared with.
"""
