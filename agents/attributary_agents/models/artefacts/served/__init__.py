"""Models served elsewhere, over HTTP: protocol, client, fetched answers."""
