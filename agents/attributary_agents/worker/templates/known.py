"""Template models of a partition: number, limit and idleness.

A model beyond the limit is refused.

Which ids are known follows from the order of the partition alone: the first ones, as many as there may be. What is
stored names them, so a restart finds those up to its checkpoint, and the records behind it bring the same ones again,
in the same order.
"""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Iterator

from attributary_topics import InvalidRecordError

from ...config.settings import Config
from ...config.templates import IDLE_S, MAX_MODELS


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
