"""What a service has that watches its models itself: `Monitor`, its models and locks, its thread and its collector."""
