"""How observations and numbers are kept in memory, and stored: as bytes wherever they are numbers."""
