"""Tests of the page in a real browser, and the stand-in server that they and those who develop the page use."""
