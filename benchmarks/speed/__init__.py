"""What explaining costs, beside the model alone, a naive loop and iXAI: `python -m benchmarks.speed`."""
