"""Which names of the state table are ours: records of others in its changelog are counted and left alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from .checkpoints import checkpoint_key, control_checkpoint_key
from .deployment_log import control_key

_NUMBERED = re.compile(rb"(.*?/)(\d+)(/.*)?", re.DOTALL)


def wanted_names(models: Iterable[str]) -> Callable[[bytes], bool]:
    """Whether a name is that of a configured model's state or deployments, or of a partition's checkpoint."""
    wanted = {key for model_id in models for key in (model_id.encode(), control_key(model_id, 0))}
    wanted |= {checkpoint_key(0), control_checkpoint_key(0)}

    def is_wanted(name: bytes) -> bool:
        # The partition's number in a name of ours can be any.
        return name in wanted or (name.startswith(b"\x00") and _NUMBERED.sub(rb"\g<1>0\g<3>", name, 1) in wanted)

    return is_wanted
