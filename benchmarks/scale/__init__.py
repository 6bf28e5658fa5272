"""What a record, the state of a model and a fleet of workers cost."""
