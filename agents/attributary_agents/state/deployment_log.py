"""Log of deployments that a model's stored state may not contain yet.

A replay finds them here. Two topics have no order between them, but after a crash a version must take over at the same
observation as before. So a deployment is stored, with the offset of the observation after which it holds, before any
further observation of the partition is handled. It is kept with the model's bytes: a file may have gone, a factory may
make another model.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from ..errors import DamagedStateError, StateError
from ..models.model_state import ModelState
from .codec import pack, unpack

MAGIC = b"ATD1"


@dataclass(frozen=True)
class Entry:
    """Deployment, as the log keeps it.

    Attributes
    ----------
    offset
        Offset of its record in the models topic, on the partition of the log.
    after
        Offset in the observations topic: the deployment holds for the observations behind it.
    configured
        `configured_as` of the configuration under which it came; the deployment does not hold under another one.
    model
        Bytes of `dump_model`.
    """

    offset: int
    after: int
    version: str
    spec: dict[str, Any]
    configured: dict[str, Any]
    model: bytes = field(repr=False)


@dataclass
class DeploymentLog:
    """Deployments of a model on a partition that may still be needed.

    The log also has the offset of the last deployment.
    """

    offset: int = -1
    entries: list[Entry] = field(default_factory=list)

    def due(self, state: ModelState, configured: dict[str, Any], offset: int) -> Entry | None:
        """Return the deployment to take over before `offset` is handled, or None.

        Of several it is the last: the others have predicted no observation.
        """
        due = [entry for entry in self._waiting(state.current.deployed, configured) if entry.after < offset]
        return due[-1] if due else None

    def standing(self, state: ModelState, registered: str, offset: int) -> Entry | None:
        """Return the last deployment if the model still has to take it, or None.

        A model whose configuration has changed to a registry's has to take it. That is before the observation at
        `offset` is handled, unless the deployment holds from a later one.

        The configuration names no version then, so an earlier deployment still says which one, if it is of the same
        registered model.
        """
        if not self.entries or self.entries[-1].spec == state.current.spec or self.entries[-1].after >= offset:
            return None
        entry = self.entries[-1]
        return entry if str(entry.spec.get("mlflow", "")).startswith(f"models:/{registered}/") else None

    def last(
        self, state: ModelState | None, configured: dict[str, Any], *, follows: bool = False
    ) -> tuple[str, dict[str, Any]]:
        """Return version and spec of the model after all waiting deployments.

        Parameters
        ----------
        follows
            Whether the configuration leaves it to deployments which version the model is.
        """
        waiting = self._waiting(-1 if state is None else state.current.deployed, configured)
        if waiting:
            return waiting[-1].version, waiting[-1].spec
        if state is None or (state.configured != configured and not follows):
            return configured["version"], {name: value for name, value in configured.items() if name != "version"}
        return state.current.name, state.current.spec

    def outdated(self, configured: dict[str, Any]) -> int:
        """Return the offset of the last overruled deployment, or -1.

        A later change of the configuration has overruled it.
        """
        return max((entry.offset for entry in self.entries if entry.configured != configured), default=-1)

    def _waiting(self, deployed: int, configured: dict[str, Any]) -> list[Entry]:
        beyond = max(deployed, self.outdated(configured))
        return [entry for entry in self.entries if entry.offset > beyond]

    def with_entry(self, entry: Entry, stored: int, unseen_from: int | None) -> DeploymentLog:
        """Return the log with a new entry, without entries that no replay needs.

        Parameters
        ----------
        stored
            `current.deployed` of the stored state, from which a replay would begin: it contains the deployments up to
            that one.
        unseen_from
            Offset such that no observation of the model lies beyond it and before the new deployment holds: of two
            deployments that hold from there on the former never takes over. None where that is not known.
        """
        kept = [
            other
            for other in self._waiting(stored, entry.configured)
            if other.after != entry.after and (unseen_from is None or other.after < unseen_from)
        ]
        return DeploymentLog(entry.offset, [*kept, entry])


def encode_log(log: DeploymentLog) -> bytes:
    """Return the bytes to store."""
    return pack(MAGIC, asdict(log))


def decode_log(model_id: str, blob: bytes | None) -> DeploymentLog:
    """Decode a stored log; without bytes, return an empty log.

    Raises
    ------
    StateError
        The bytes are torn (`DamagedStateError`), or no log of this format.
    """
    if blob is None:
        return DeploymentLog()
    try:
        data = unpack(MAGIC, blob)
        return DeploymentLog(data["offset"], [Entry(**entry) for entry in data["entries"]])
    except DamagedStateError as error:
        raise type(error)(f"the stored log of deployments of {model_id} {error}") from error
    except (StateError, KeyError, TypeError) as error:
        raise StateError(
            f"the stored deployments of model {model_id} cannot be read: {error}. Run the release that wrote them; or "
            f"start the model afresh with `attributary models reset {model_id}`, and deploy again"
        ) from error
