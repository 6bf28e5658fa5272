"""How observations and numbers are kept and stored: numbers as bytes."""
