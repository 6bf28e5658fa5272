"""Speaks HTTP: the REST interface, the live stream, the page's files, the token, and what watches the server itself."""
