"""Names of stored states in the state table.

They say which states are stored under which key, and which of them are ours. A model's state has its model id as its
name. Every other name begins with a control character, which no model id does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from ..config.templates import Finder

_CONTROL = b"\x00control/"
_NUMBERED = re.compile(rb"(.*?/)(\d+)(/.*)?", re.DOTALL)


def checkpoint_key(partition: int) -> bytes:
    """Return the name of a partition's checkpoint of the observations topic."""
    return b"\x00checkpoint/%d" % partition


def checkpoint_copy_key(partition: int) -> bytes:
    """Return the name of the copy of a partition's observations checkpoint."""
    return b"\x00checkpoint-copy/%d" % partition


def control_checkpoint_key(partition: int) -> bytes:
    """Return the name of a partition's checkpoint of the models topic."""
    return b"\x00control-checkpoint/%d" % partition


def is_checkpoint(name: bytes) -> bool:
    """Return whether a name belongs to a partition's checkpoint.

    It may be a checkpoint of either topic.
    """
    return name.startswith((b"\x00checkpoint/", b"\x00checkpoint-copy/", b"\x00control-checkpoint/"))


def control_key(model_id: str, partition: int) -> bytes:
    """Return the name of a model's deployments on a partition."""
    return b"%s%d/" % (_CONTROL, partition) + model_id.encode()


def merge_key(model_id: str, partition: int) -> bytes:
    """Return the name of a sharded model's merge on a partition.

    The partition is that of the shards' topic that has the shards.
    """
    return b"\x00merge/%d/" % partition + model_id.encode()


def note_key(partition: int) -> bytes:
    """Return the name of a partition's note of work that may end its owner."""
    return b"\x00note/%d" % partition


def wanted_names(models: Finder, also: Iterable[str] = ()) -> Callable[[bytes, int], bool]:
    """Return a test of whether a partition can have a name.

    Such names are of a model or of the partition itself. They are those of a model's state, deployments and merge, of a
    checkpoint and of a note. The changelog's records with other names, and with names of other partitions, are counted
    and left alone.

    Parameters
    ----------
    also
        Further models, which need not be configured.
    """
    wanted = {
        key
        for model_id in (*models.ids, *also)
        for key in (model_id.encode(), control_key(model_id, 0), merge_key(model_id, 0))
    }
    wanted |= {checkpoint_key(0), checkpoint_copy_key(0), control_checkpoint_key(0), note_key(0)}

    def is_wanted(name: bytes, partition: int) -> bool:
        if not name.startswith(b"\x00"):
            return name in wanted or models.id_of_key(name) is not None
        match = _NUMBERED.fullmatch(name)
        if match is None or match[2] != b"%d" % partition:
            return False  # no owner of this partition writes it, so none would ever delete it
        if match[1] == _CONTROL and match[3] and models.id_of_key(match[3][1:]) is not None:
            return True
        return match[1] + b"0" + (match[3] or b"") in wanted

    return is_wanted
