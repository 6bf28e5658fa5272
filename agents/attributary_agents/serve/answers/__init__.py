"""Holds the types of what the REST interface answers, which the page, its single file and the views share."""
