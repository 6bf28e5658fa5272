"""What the configuration says of how a model is given: made here, in a file, by MLflow, or served elsewhere."""
