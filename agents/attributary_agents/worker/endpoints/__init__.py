"""Asks the endpoints of served models before observations are handled, so that nothing waits while one is."""
