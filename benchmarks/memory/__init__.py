"""What the resident memory of a worker with one small model is."""
