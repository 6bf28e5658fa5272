"""Examples that run: each a package with a command, `python -m examples.NAME`."""
