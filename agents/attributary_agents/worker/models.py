"""Models of a partition: loading, making, refusing, new versions.

Of the models of a template a partition takes so many as there may be, and refuses those beyond. Which ids are known
follows from the order of the partition alone: the first ones. What is stored names them, so a restart finds those up to
its checkpoint, and the records behind it bring the same ones again, in the same order.
"""

from __future__ import annotations

import copy
import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

from attributary_explainers.monitor.events import Event
from attributary_topics import InvalidRecordError, Observation

from ..config.models import ModelConfig
from ..config.settings import Config
from ..config.templates import IDLE_S, MAX_MODELS
from ..errors import DamagedStateError, without_text
from ..models.model_state import ModelState, new_state
from ..models.prequential import StepError
from ..models.recovery import recover
from ..models.swap import begin_with, swap
from ..models.versions import Version, allowlist_of, configured_as, configured_version
from ..state.checkpoints import StoredAt, load_stored
from ..state.codec import decode_state, how_to_mend
from ..state.deployment_log import DeploymentLog, Entry, decode_log
from ..state.names import checkpoint_key, control_checkpoint_key, control_key
from .records import Record

logger = logging.getLogger(__name__)


class KnownModels:
    """Template models that a partition knows, and when they were used.

    The last use is known for models that are loaded.
    """

    def __init__(self, config: Config) -> None:
        self._finder = config.finder
        templates = {name: config.models[name] for name in self._finder.templates}
        # A partition does not know how many the others have: each has an equal part.
        parts = config.kafka.partitions
        self._most = {name: math.ceil((one.max_models or MAX_MODELS) / parts) for name, one in templates.items()}
        self._idle_ms = {name: 1000.0 * (one.idle or IDLE_S) for name, one in templates.items()}
        self._known: dict[str, set[str]] = {name: set() for name in templates}
        self._used: dict[str, dict[str, int]] = {name: {} for name in templates}
        self.n_handled: Counter[str] = Counter()
        """Template to the observations that its models have taken; one counter for all partitions of a worker."""
        self.now_ms = 0
        """Stream time: the largest time of a record of the partition so far, which this owner has seen."""

    def copy(self) -> KnownModels:
        """Return a copy of the current knowledge, with new counts.

        The counts are of the observations that templates have handled.
        """
        other = copy.copy(self)
        other._known = {name: known.copy() for name, known in self._known.items()}
        other._used = {name: used.copy() for name, used in self._used.items()}
        other.n_handled = Counter()
        return other

    @property
    def templates(self) -> tuple[str, ...]:
        """The templates of the configuration."""
        return self._finder.templates

    def template_of(self, model_id: str) -> str | None:
        """Return the template of a model; None where it is configured itself."""
        return self._finder.template_of(model_id) if self.templates else None

    def n_known(self, template: str) -> int:
        """Return the number of a template's models on the partition.

        They are loaded or stored.
        """
        return len(self._known[template])

    def n_loaded(self, template: str) -> int:
        """Return how many of them are in memory."""
        return len(self._used[template])

    def note(self, model_id: str) -> None:
        """Note that there is a model, whatever it is configured by."""
        if (template := self.template_of(model_id)) is not None:
            self._known[template].add(model_id)

    def check_room(self, model_id: str) -> None:
        """Raise InvalidRecordError if a new model exceeds its template's limit."""
        template = self.template_of(model_id)
        if template is None or model_id in (known := self._known[template]) or len(known) < self._most[template]:
            return
        expected = f"one of the {len(known)} models that {template!r} has on this partition (max_models)"
        raise InvalidRecordError("too_many_models", "key", expected, model_id)

    def note_loaded(self, model_id: str, used_ms: int | None) -> None:
        """Note that a model is in memory, and its last observation's time.

        The time is None where there was no observation.
        """
        if (template := self.template_of(model_id)) is not None:
            self._known[template].add(model_id)
            # Nothing is idle before the partition has a time: the first record would end all of them.
            self._used[template][model_id] = max(self.now_ms, used_ms or 0)

    def note_used(self, template: str, model_id: str) -> None:
        """Note that a model has an observation now."""
        self._used[template][model_id] = self.now_ms

    def note_gone(self, model_id: str) -> None:
        """Note that a model is in memory no more."""
        if (template := self.template_of(model_id)) is not None:
            self._used[template].pop(model_id, None)

    def idle(self) -> Iterator[str]:
        """Yield loaded models that are idle by the limit of their template."""
        for template, used in self._used.items():
            since = self.now_ms - self._idle_ms[template]
            yield from [model_id for model_id, at in used.items() if at <= since]


class PartitionModels(Mapping[str, ModelState]):
    """Loaded or made models of a partition, as a mapping of id to state.

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
        """Name of `models` to its `configured_as`, which every observation is compared with."""
        self._unchanged: dict[str, dict[str, Any]] = {}
        """Model id to the `configured` of its state that has been found equal to that."""
        self.stored = load_stored(load, checkpoint_key(number))
        """What the next checkpoint names, and what the last one named of models that are not loaded: the states."""
        self.stored_logs = load_stored(load, control_checkpoint_key(number))
        """The same of the checkpoint of the models topic: the deployments."""
        self.known = KnownModels(config)
        """Which models of templates there are, and which of them are idle."""
        for model_id in self.stored:
            self.known.note(model_id)
        self.durable = -1
        """Last offset of the last checkpoint that this owner has made."""
        self.refused: dict[str, DamagedStateError] = {}
        """Models whose stored state is damaged: their observations go to the dead letters."""
        self.waiting: dict[str, None] = {}
        """Ids of the models that are stored and about to be restored, in their order."""
        self.resting: set[str] = set()
        """Ids of the models that are stored, and restored only when they are asked for."""
        self.unversioned = {model_id for model_id, model in config.models.items() if model.registered is not None}
        """Ids of the models of which it is not known that they have a version: that is for the models topic to say."""
        self.awaited: set[str] = set()
        """Those of them whose observations wait."""
        self._refused_standing: set[str] = set()
        """Ids of the models whose last deployment cannot take over."""
        self._elsewhere: dict[str, int] = {}
        """Model id to the partition on which the state began that is stored here."""

    def __getitem__(self, model_id: str) -> ModelState:
        return self._states[model_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._states)

    def __len__(self) -> int:
        return len(self._states)

    def wait_for(self, model_ids: Iterable[str]) -> None:
        """Note which models are stored, and to be restored."""
        self.waiting = dict.fromkeys(model_ids)
        for model_id in self.waiting:
            self.known.note(model_id)

    def rest_but(self, model_ids: Collection[str]) -> None:
        """Leave waiting models as stored until asked for, except these."""
        self.resting.update(model_id for model_id in self.waiting if model_id not in model_ids)
        self.waiting = {model_id: None for model_id in self.waiting if model_id in model_ids}

    def is_restored(self, model_id: str) -> bool:
        """Return whether a model neither waits to be restored nor rests."""
        return model_id not in self.waiting and model_id not in self.resting

    def restore(self, model_id: str) -> None:
        """Load a configured model where its observations come on this partition.

        Raises
        ------
        StateError
            The stored state cannot be used by this release or under this configuration.
        """
        self._leave_rest(model_id)
        if model_id in self._states:
            return
        try:
            state = self._stored(model_id)
        except (DamagedStateError, InvalidRecordError):
            return  # a dead letter of each of its observations says it
        if state is not None and state.partition == self._number:
            self._take(state)

    def _take(self, state: ModelState) -> None:
        self._leave_rest(state.model_id)
        self._states[state.model_id] = state
        if state.failed_offsets:  # as those that stay in memory forget them at each checkpoint
            state.failed_offsets = {n: reason for n, reason in state.failed_offsets.items() if n > self.durable}
        self.known.note_loaded(state.model_id, state.last_observation_ms)

    def rest(self, model_id: str) -> bool:
        """Drop a template's model from memory if all of it is stored.

        Returns whether it was dropped.
        """
        stored, state = self.stored.get(model_id), self._states[model_id]
        if stored is None or stored.offset != state.offset:
            return False
        del self._states[model_id]
        self._unchanged.pop(model_id, None)
        self.known.note_gone(model_id)
        self.resting.add(model_id)
        return True

    def forget_logs(self) -> None:
        """Forget the deployments of template models that are not loaded.

        They are stored.
        """
        for model_id in [one for one in self._logs if one not in self._states]:
            if self.known.template_of(model_id) is not None:
                del self._logs[model_id]

    def _stored(self, model_id: str) -> ModelState | None:
        if model_id in self.refused:
            raise self.refused[model_id]
        self._check_place(model_id)
        try:
            blob = self._load(model_id.encode())
            state = None if blob is None else decode_state(model_id, self._config.settings_of(model_id), blob)
            found = None if state is None or blob is None else StoredAt.of(state.offset, blob)
            if (named := self.stored.get(model_id)) is not None:
                named.check(found, f"the stored state of {model_id}")
        except DamagedStateError as error:
            raise self._refuse(model_id, error) from error
        if state is not None and state.partition not in (-1, self._number):
            self._elsewhere[model_id] = state.partition
            self._check_place(model_id)
        if state is not None and found is not None and state.partition == self._number:
            self.stored[model_id] = found
        return state

    def _check_place(self, model_id: str) -> None:
        if model_id in self._elsewhere:
            raise InvalidRecordError(
                "model_on_two_partitions",
                "key",
                f"observations of {model_id!r} on partition {self._elsewhere[model_id]}, where they began "
                "(one partitioner for all producers)",
                self._number,
            )

    def _refuse(self, model_id: str, error: DamagedStateError) -> DamagedStateError:
        message = f"{error}. Its observations go to the dead letters. {how_to_mend(model_id)}"
        self.refused[model_id] = type(error)(message)
        logger.error("model %s is refused: %s", model_id, message)
        return self.refused[model_id]

    def refuse(self, model_id: str) -> None:
        """Refuse a model whose stored state has ended workers that restored it."""
        self._leave_rest(model_id)
        self._refuse(model_id, DamagedStateError(f"workers ended while they restored {model_id}"))

    def _leave_rest(self, model_id: str) -> None:
        self.waiting.pop(model_id, None)
        self.resting.discard(model_id)

    def begin_as(self, other: PartitionModels, model_ids: Iterable[str]) -> None:
        """Take over all that `other` knows of models, except their states.

        That is: deployments, refusals, places and templates.
        """
        self.refused, self._elsewhere, self.durable = other.refused.copy(), other._elsewhere.copy(), other.durable
        for model_id in model_ids:
            with suppress(DamagedStateError):  # then it is refused there, and here as well
                self._logs[model_id] = other.log(model_id)
        self.refused.update(other.refused)
        self.known = other.known.copy()

    def log(self, model_id: str) -> DeploymentLog:
        """Return a model's deployments, loading them at the first call.

        They are the ones that may have come after its stored state.

        Raises
        ------
        StateError
            The stored ones cannot be read; `DamagedStateError` where they are older than the checkpoint says.
        """
        if model_id not in self._logs:
            if model_id in self.refused:
                raise self.refused[model_id]
            try:
                self._logs[model_id] = self._stored_log(model_id)
            except DamagedStateError as error:
                raise self._refuse(model_id, error) from error
        return self._logs[model_id]

    def log_if_loaded(self, model_id: str) -> DeploymentLog | None:
        """Return a model's deployments; None if `log` has not loaded them."""
        return self._logs.get(model_id)

    def _stored_log(self, model_id: str) -> DeploymentLog:
        blob = self._load(control_key(model_id, self._number))
        log = decode_log(model_id, blob)
        found = None if blob is None else StoredAt.of(log.offset, blob)
        if (named := self.stored_logs.get(model_id)) is not None:
            named.check(found, f"the list of stored deployments of {model_id}")
        if found is not None:
            self.stored_logs[model_id] = found
        return log

    def replace_log(self, model_id: str, log: DeploymentLog, blob: bytes) -> None:
        """Replace a model's deployments by a longer log.

        It is about to be stored as these bytes.
        """
        self._logs[model_id] = log
        self.stored_logs[model_id] = StoredAt.of(log.offset, blob)

    def find(self, model_id: str) -> ModelState | None:
        """Return a model's state; None before its first observation.

        The first observation is that on this partition.

        Raises
        ------
        StateError, InvalidRecordError
            As for `find_or_make`.
        """
        if model_id not in self._states and self._stored(model_id) is None:
            return None
        return self.find_or_make(model_id)

    def awaits_version(self, model_id: str) -> bool:
        """Return whether a model is still waiting for its first version.

        Nothing of it can be handled until the models topic names a version.

        Raises
        ------
        StateError
            As for `find_or_make`, where that is no matter of this model alone.
        """
        if model_id not in self.unversioned:
            return False
        try:
            if model_id not in self._states and not self.log(model_id).entries and self._stored(model_id) is None:
                return True
        except (DamagedStateError, InvalidRecordError):
            return False  # its observations are dead letters
        self.unversioned.discard(model_id)
        self.awaited.discard(model_id)
        return False

    def find_or_make(self, model_id: str) -> ModelState:
        """Return the state of a configured model, loaded or new.

        Raises
        ------
        DamagedStateError
            The stored state is not what a worker has written.
        StateError
            It cannot be used by this release or under this configuration.
        InvalidRecordError
            The model's observations began on another partition, or its template has too many models.
        """
        state = self._states.get(model_id)
        if state is None:
            state = self._stored(model_id)
            if state is None:
                self.known.check_room(model_id)
                state = new_state(model_id, self._config.settings_of(model_id), self._first_version(model_id))
            state.partition = self._number
            self._take(state)
        return state

    def _first_version(self, model_id: str) -> Version | None:
        """Return a registry model's first version; None: as configured.

        The version is named by the models topic.
        """
        config = self._config.settings_of(model_id)
        entries = self.log(model_id).entries if config.registered is not None else []
        return _version_of(config, entries[0]) if entries else None

    def take_over(self, state: ModelState, record: Record) -> tuple[ModelState, list[Event]]:
        """Put in place the version that is due before this observation.

        It is due by the models topic or by the configuration.

        Returns
        -------
        The state that the observation is for, and the events that explain the change.
        """
        config, model_id = state.config, state.model_id
        log = self.log(model_id)
        if not log.entries and state.configured is self._unchanged.get(model_id):
            return state, []
        configured = self._configured_as(model_id)
        entry = self._entry_due(state, configured, record.offset) if log.entries else None
        if entry is None and (state.configured == configured or config.registered is not None):
            # An alias names no version: the present one goes on until the models topic names another.
            self._unchanged[model_id] = state.configured
            return state, []
        events: list[Event] = []
        try:
            if entry is None:
                new = configured_version(config, deployed=log.outdated(configured))
            else:
                new = _version_of(config, entry)
            if state.n_observations == state.n_failed == 0:
                swapped = begin_with(state, new)
            else:
                swapped, events = swap(state, new, record.source)
        except Exception as error:
            if entry is None:
                raise  # the worker has made the configured model when it started
            # It could when it was deployed. The last version goes on: losing the observations would be worse.
            logger.error(
                "model %s: version %s stays, %s cannot take over: %s",
                model_id,
                state.version,
                entry.version,
                without_text(error),
            )
            state.refuse_deployment(entry.offset)
            self._refused_standing.add(model_id)
            return self.take_over(state, record)
        self._states[model_id] = swapped
        return swapped, events

    def _entry_due(self, state: ModelState, configured: dict[str, Any], offset: int) -> Entry | None:
        """Return the deployment that takes over before `offset`, or None."""
        log, registered = self.log(state.model_id), state.config.registered
        entry = log.due(state, configured, offset)
        if entry is not None or registered is None or state.configured == configured:
            return entry
        return None if state.model_id in self._refused_standing else log.standing(state, registered.name, offset)

    def recover(
        self, state: ModelState, observation: Observation, error: StepError, record: Record, n_before: int
    ) -> tuple[ModelState, list[Event]] | None:
        """Put the last good state of a faulty model in its place.

        Does this as `recover` in `models` does.
        """
        recovered = recover(state, observation, error, record.source, n_before)
        if recovered is not None:
            self._states[state.model_id] = recovered[0]
        return recovered

    def _configured_as(self, model_id: str) -> dict[str, Any]:
        name = self.known.template_of(model_id) or model_id  # once for all models of a template
        if name not in self._configured:
            self._configured[name] = configured_as(self._config.models[name])
        return self._configured[name]


def _version_of(config: ModelConfig, entry: Entry) -> Version:
    return Version(entry.version, entry.spec, allowlist_of(config).load(entry.model), entry.offset)
