"""Judges what happened: the verdict from three losses, since when, and whether changes follow one another."""
