"""What is served, beside real brokers."""
