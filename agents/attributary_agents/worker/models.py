"""The models of one partition: loaded, made, refused, and taken over by their next versions."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attributary_explainers import load_model
from attributary_topics import ChangeEvent, InvalidRecordError

from ..config.settings import Config
from ..errors import DamagedStateError
from ..models.model_state import ModelState, new_state
from ..models.swap import begin_with, swap
from ..models.versions import Version, configured_as, configured_version
from ..state.codec import decode_state, how_to_mend
from ..state.deployment_log import DeploymentLog, decode_log
from ..state.names import control_key
from .records import Record

logger = logging.getLogger(__name__)


class PartitionModels(Mapping[str, ModelState]):
    """Keeps the models whose observations come on one partition: model id to state, of those that are loaded or made.

    Parameters
    ----------
    load
        Key of the state table to the stored bytes, or None.
    """

    def __init__(self, number: int, config: Config, load: Callable[[bytes], bytes | None]) -> None:
        self._number = number
        self._config = config
        self._load = load
        self._states: dict[str, ModelState] = {}
        self._logs: dict[str, DeploymentLog] = {}
        self._configured: dict[str, dict[str, Any]] = {}
        """Model id to its `configured_as`, which every observation is compared with."""
        self.refused: dict[str, DamagedStateError] = {}
        """Models whose stored state is damaged: their observations go to the dead letters."""

    def __getitem__(self, model_id: str) -> ModelState:
        return self._states[model_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def restore(self, model_id: str) -> None:
        """Load a configured model where its observations come on this partition.

        Raises
        ------
        StateError
            The stored state cannot be used by this release or under this configuration.
        """
        if model_id in self._states:
            return
        try:
            state = self._stored(model_id)
        except DamagedStateError:
            return  # logged, and a dead letter of each of its observations says it again
        if state is not None and state.partition == self._number:
            self._states[model_id] = state

    def _stored(self, model_id: str) -> ModelState | None:
        if model_id in self.refused:
            raise self.refused[model_id]
        try:
            blob = self._load(model_id.encode())
            return None if blob is None else decode_state(model_id, self._config.models[model_id], blob)
        except DamagedStateError as error:
            message = f"{error}. Its observations go to the dead letters. {how_to_mend(model_id)}"
            self.refused[model_id] = DamagedStateError(message)
            logger.error("model %s is refused: %s", model_id, message)
            raise self.refused[model_id] from None

    def log(self, model_id: str) -> DeploymentLog:
        """Load, once, the deployments of a model that may have come after its stored state, and return them.

        Raises
        ------
        StateError
            The stored ones cannot be read.
        """
        if model_id not in self._logs:
            self._logs[model_id] = decode_log(model_id, self._load(control_key(model_id, self._number)))
        return self._logs[model_id]

    def replace_log(self, model_id: str, log: DeploymentLog) -> None:
        """Put a longer log in place of a model's."""
        self._logs[model_id] = log

    def find(self, model_id: str) -> ModelState | None:
        """Return the state of a model; None before its first observation on this partition.

        Raises
        ------
        StateError, InvalidRecordError
            As for `find_or_make`.
        """
        if model_id not in self._states and self._stored(model_id) is None:
            return None
        return self.find_or_make(model_id)

    def find_or_make(self, model_id: str) -> ModelState:
        """Return the state of a configured model, loaded or new.

        Raises
        ------
        DamagedStateError
            The stored state is not what a worker has written.
        StateError
            It cannot be used by this release or under this configuration.
        InvalidRecordError
            The model's observations began on another partition.
        """
        state = self._states.get(model_id)
        if state is None:
            state = self._stored(model_id) or new_state(model_id, self._config.models[model_id])
            if state.partition not in (-1, self._number):
                raise InvalidRecordError(
                    "model_on_two_partitions",
                    "key",
                    f"observations of {model_id!r} on partition {state.partition}, where they began "
                    "(one partitioner for all producers)",
                    self._number,
                )
            state.partition = self._number
            self._states[model_id] = state
        return state

    def take_over(self, state: ModelState, record: Record) -> tuple[ModelState, list[ChangeEvent]]:
        """Put the version in place that is due before this observation, by the models topic or the configuration.

        Returns
        -------
        The state that the observation is for, and the events that explain the change.
        """
        config, model_id = state.config, state.model_id
        configured, log = self._configured_as(model_id), self.log(model_id)
        entry = log.due(state, configured, record.offset) if log.entries else None
        if entry is None and state.configured == configured:
            return state, []
        events: list[ChangeEvent] = []
        try:
            if entry is None:
                new = configured_version(config, deployed=log.outdated(configured))
            else:
                new = Version(entry.version, entry.spec, load_model(entry.model), entry.offset)
            if state.n_observations == state.n_failed == 0:
                swapped = begin_with(state, new)
            else:
                swapped, events = swap(state, new, record.source, record.timestamp_ms)
        except Exception:
            if entry is None:
                raise  # the worker has made the configured model when it started
            # It could when it was deployed. The last version goes on: losing the observations would be worse.
            logger.exception("model %s: version %s stays, %s cannot take over", model_id, state.version, entry.version)
            state.refuse_deployment(entry.offset)
            return self.take_over(state, record)
        self._states[model_id] = swapped
        return swapped, events

    def _configured_as(self, model_id: str) -> dict[str, Any]:
        if model_id not in self._configured:
            self._configured[model_id] = configured_as(self._config.models[model_id])
        return self._configured[model_id]
