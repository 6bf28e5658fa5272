"""Models that are served elsewhere: what they are asked and answer over HTTP, and how a worker knows the answers."""
