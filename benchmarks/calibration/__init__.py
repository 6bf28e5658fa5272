"""How often the interval of an importance holds the exact value: `python -m benchmarks.calibration`."""
