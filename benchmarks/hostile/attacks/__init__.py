"""The attacks, a module for each door that they come through."""
