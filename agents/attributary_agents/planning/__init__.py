"""Says what a load needs, by what a record costs on this machine. May import `rehearsal` and what that may import."""
