"""Keeps account of the models of templates on one partition: which there are, how many there may be, which are idle."""
