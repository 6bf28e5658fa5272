"""Tests of charts in a real browser: on the pages that have them, and alone."""
