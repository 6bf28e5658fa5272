"""Makes one story of what the watches of a model find: incidents."""
