"""Does what is told of a loss mean that the model got worse, and which feature is it: `python -m benchmarks.harm`."""
