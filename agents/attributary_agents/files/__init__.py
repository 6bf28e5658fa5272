"""Files of observations."""
