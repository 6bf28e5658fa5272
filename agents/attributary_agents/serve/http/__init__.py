"""HTTP: REST interface, live stream, page files, token, monitoring."""
