"""Takes records into the store: reads what they say, writes it, and tells what is new of it."""
