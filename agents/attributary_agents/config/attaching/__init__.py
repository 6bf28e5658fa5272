"""What the configuration says of topics that are not ours, and how it fits the models."""
