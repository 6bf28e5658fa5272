"""Names of the state table: which states are stored under which key, and which of them are ours.

A model's state has its model id as its name. Every other name begins with a control character, which no model id does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

_NUMBERED = re.compile(rb"(.*?/)(\d+)(/.*)?", re.DOTALL)


def checkpoint_key(partition: int) -> bytes:
    """Return the name of a partition's checkpoint of the observations topic."""
    return b"\x00checkpoint/%d" % partition


def control_checkpoint_key(partition: int) -> bytes:
    """Return the name of a partition's checkpoint of the models topic."""
    return b"\x00control-checkpoint/%d" % partition


def control_key(model_id: str, partition: int) -> bytes:
    """Return the name of a model's deployments on a partition."""
    return b"\x00control/%d/" % partition + model_id.encode()


def wanted_names(models: Iterable[str]) -> Callable[[bytes], bool]:
    """Return a test of names: whether one is that of a listed model's state or deployments, or of a checkpoint.

    The changelog's records with other names are counted and left alone.
    """
    wanted = {key for model_id in models for key in (model_id.encode(), control_key(model_id, 0))}
    wanted |= {checkpoint_key(0), control_checkpoint_key(0)}

    def is_wanted(name: bytes) -> bool:
        # The partition's number in a name of ours can be any.
        return name in wanted or (name.startswith(b"\x00") and _NUMBERED.sub(rb"\g<1>0\g<3>", name, 1) in wanted)

    return is_wanted
