"""Connections to brokers that come and go, their answers, and the log.

A client connects with a back-off; the log tells when brokers do not answer.
"""
