"""Takes waiting observations through the models; publishes the events."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping

from attributary_topics import Topics
from attributary_topics.errors import without_text

from ..outbox import Outbox, record_of
from .model import MonitoredModel, Told, reason_of

logger = logging.getLogger(__name__)

_MOST_SAID = 1000

_REMEDIES = {
    "wrong_label": "give labels as the model's classes are written, or finite numbers; those that come later by "
    "predict(…, id=…) and label(…)",
    "prediction_not_finite": "the model predicts NaN, infinity, or a number so large that no loss takes it",
    "model_failed": "Monitor(on_error='raise') raises it, with its text",
    "publish": "it is not sent again",
}
"""What to do about it, or what becomes of it, by what went wrong."""


class Background:
    """Calls `work` in a thread when woken, until it returns False.

    `work` raises nothing. The thread begins with the first `wake`, in the process that calls it: a server that forks
    its workers has one in each of them.
    """

    def __init__(self, work: Callable[[], bool]) -> None:
        self._work = work
        self._begin = threading.Lock()
        self._woken = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def wake(self) -> None:
        """Have the thread look for something to do."""
        self._woken.set()
        with self._begin:
            if not self._is_closed and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name="attributary-monitor", daemon=True)
                self._thread.start()

    def close(self) -> None:
        """End the thread after the part that it is at."""
        with self._begin:
            self._is_closed = True
        self._woken.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join()

    def _run(self) -> None:
        while not self._is_closed:
            self._woken.wait()
            self._woken.clear()
            while not self._is_closed and self._work():
                pass


class Intake:
    """Takes observations in a thread, or by whoever brings them.

    Beyond `max_waiting` waiting observations of a model none is explained; beyond twice as many, whoever brings one
    helps. With `raises`, what a model raises is raised by whoever calls.
    """

    def __init__(
        self,
        models: Mapping[str, MonitoredModel],
        *,
        in_background: bool,
        max_waiting: int,
        raises: bool,
        topics: Topics,
    ) -> None:
        self._models, self.max_waiting, self._topics = models, max_waiting, topics
        self._raises = raises
        self._kept: Exception | None = None
        """The first error since one was raised, where that is wanted."""
        self._said: set[tuple[str, str]] = set()
        """What the log was told, by model and text."""
        self.outbox = Outbox(
            lambda model_id, outcome: models[model_id].count_event(outcome),
            lambda model_id, error: self._say(model_id, "publish", error, "an event is not published"),
        )
        self.background = Background(self._work) if in_background else None

    def arrived(self, model: MonitoredModel) -> None:
        """Have waiting observations taken, by the thread or at once."""
        if self.background is None:
            self.take_all(model)
            self.outbox.publish()
            self._raise_kept()
            return
        if len(model.inbox) > 2 * self.max_waiting:
            self._take_next(model, may_explain=False)
        self.background.wake()

    def take_all(self, model: MonitoredModel) -> None:
        """Take all that waits of a model, with explanations."""
        while self._take_next(model, may_explain=True):
            pass

    def flush(self) -> None:
        """Take all that waits, publish the events, and raise a kept error."""
        for model in tuple(self._models.values()):
            self.take_all(model)
        self.outbox.publish()
        self._raise_kept()

    def close(self) -> None:
        """End the thread and take the remaining observations."""
        if self.background is not None:
            self.background.close()
        self.flush()

    def wake(self) -> None:
        """Wake the thread, if there is any, to look for work."""
        if self.background is not None:
            self.background.wake()

    def put(self, model: MonitoredModel, told: Iterable[Told]) -> None:
        """Keep events for the publisher, if there is any."""
        if self.outbox.publisher is None:
            return
        for event, place, time_ms, n in told:
            try:
                record = record_of(event, self._topics, "", place, time_ms, n)
            except Exception as error:  # noqa: BLE001 - names and values of the user's are in it: the model goes on
                model.count_event("failed")
                self._say(model.model_id, "publish", error, "an event cannot be written")
            else:
                self.outbox.put(model.model_id, record)

    def note(self, model: MonitoredModel, stage: str, error: Exception) -> None:
        """Count and log a model's error, or its prediction's, in an answer."""
        model.count_failure(reason_of(error))
        self._say(model.model_id, stage, error, "a prediction is of no use")

    def _work(self) -> bool:
        """Take an observation of each model; return whether there is more."""
        there = False
        for model in tuple(self._models.values()):
            there |= self._take_next(model, may_explain=len(model.inbox) <= self.max_waiting)
        self.outbox.publish()
        return there

    def _take_next(self, model: MonitoredModel, *, may_explain: bool) -> bool:
        """Take the longest waiting observation; return whether there was any."""
        with model.lock:
            try:
                one = model.inbox.popleft()
            except IndexError:
                return False
            try:
                self.put(model, model.take(one, may_explain=may_explain))
            except Exception as error:  # noqa: BLE001 - a model is the user's code: whatever it raises, the service goes on
                reason = reason_of(error)
                model.count_failure(reason)
                self._kept = self._kept or (error if self._raises else None)
                self._say(model.model_id, reason, error, "an observation is not taken")
        return True

    def _say(self, model_id: str, what: str, error: Exception, said: str) -> None:
        """Log an error once, without values.

        It says in one word what went wrong, and what became of it.
        """
        text = without_text(error)
        if (model_id, text) in self._said:
            return
        if len(self._said) < _MOST_SAID:
            self._said.add((model_id, text))
        remedy = f"; {_REMEDIES[what]}" if what in _REMEDIES else ""
        logger.warning("model %s: %s (%s): %s%s. Further ones are only counted", model_id, said, what, text, remedy)

    def _raise_kept(self) -> None:
        kept, self._kept = self._kept, None
        if kept is not None:
            raise kept
