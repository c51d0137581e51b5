"""`python -m boleir` is `bolec`."""

from boleir.cli.main import main

if __name__ == "__main__":
    raise SystemExit(main())
