"""Says how long the parts of a model's state are kept, and how each is stored."""
