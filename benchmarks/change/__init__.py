"""How often change explanation is wrong, how much it misses and how late it is: `python -m benchmarks.change`."""
