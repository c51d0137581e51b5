"""The `bolec` command line: one file per command.

The commands sit on top of all three layers and reach into them lazily, so that `bolec --help` and a
usage error cost no more than Python's own start.
"""
