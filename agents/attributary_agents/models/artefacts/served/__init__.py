"""Models served elsewhere: requests, answers, and known answers.

They are asked over HTTP.
"""
