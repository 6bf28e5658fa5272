"""Makes a model's events: importances, changes and lasting shifts."""
