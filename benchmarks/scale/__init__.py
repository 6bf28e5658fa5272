"""What the state of one ordinary model costs, of which a worker may have thousands."""
