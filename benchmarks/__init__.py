"""Commands that show a claim."""
