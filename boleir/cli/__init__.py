"""The `bolec` command line: one file per command."""
