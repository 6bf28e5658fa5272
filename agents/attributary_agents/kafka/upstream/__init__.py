"""Corrections of Faust and aiokafka: all that touches their private names.

Each module corrects one class of theirs, and says what is wrong with it, in which version, and which test fails once
upstream has mended it (`tests/agents/kafka/upstream`). Both versions are pinned: read the tests before a pin moves.
"""

PROVED_VERSIONS = {"faust-streaming": "0.15.3", "aiokafka": "0.14.0"}
