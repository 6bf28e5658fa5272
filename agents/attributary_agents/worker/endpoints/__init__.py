"""Endpoints of served models, asked ahead of the observations.

So no handling of an observation waits for an answer.
"""
