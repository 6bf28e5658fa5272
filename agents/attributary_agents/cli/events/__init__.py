"""The commands about what workers have written to topics: importances, changes, dead letters."""
