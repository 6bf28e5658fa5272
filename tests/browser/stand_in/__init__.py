"""A server with canned answers, so that the page can be looked at, developed and tested without Kafka."""

from __future__ import annotations

from .server import StandIn

__all__ = ["StandIn"]
