"""Events of a model: importances, changes, and shifts of importance and of the loss."""
