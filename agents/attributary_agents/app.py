"""Faust application: topics, state table, agents, timers and signals."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import faust

from .config.settings import Config, KafkaConfig
from .errors import DamagedStateError, StateError
from .kafka.clients import MAX_BATCH_BYTES, client_options
from .kafka.inbox import Intake
from .kafka.membership import client_id, fenced
from .kafka.upstream.faust_app import ExactApp
from .monitoring.web import WebServer
from .sources.mappers.board import SourcesBoard
from .sources.mappers.mapper import ends_quietly
from .sources.mappers.service import MapperService
from .state.admin import read_again
from .state.names import wanted_names
from .state.records import StateRecords
from .state.seal import seal_of
from .worker.aliases import AliasPoller, followed
from .worker.assigned import Assigned
from .worker.worker import Worker

logger = logging.getLogger(__name__)

_BESIDE_STOPS_WITHIN_S = 3.0
"""How long what runs beside the records may take to end; then it is cancelled."""


@dataclass
class Application:
    """The app with the parts that tests and the command line need to reach."""

    app: faust.App
    worker: Worker
    web: WebServer
    mapper: MapperService | None = None
    """Maps the sources in this process; None where there are none, or another process does."""
    poller: AliasPoller | None = None
    """Looks at MLflow's aliases while it is for this process to do; None where no model is of a registry."""
    left: list[Assigned] = field(default_factory=list)
    """The partitions that were given up at the stop, as they were after their final checkpoints."""
    stop: Callable[[], None] | None = None
    """Stops the process as a signal does; None where nobody has said how."""
    unusable: str = ""
    """Why the process was stopped, where no restart mends that; empty where there is no such reason."""

    failure: Exception | None = None
    """What has failed when the process was about to stop already."""

    async def end(self, error: Exception) -> None:
        """End the process by Faust's crash, or by a stop for unusable state.

        A crash comes with its traces.
        """
        if _is_of_user(error) and self.stop is not None:
            self._stop_for(f"what is stored cannot be used: {error}")
            await asyncio.Event().wait()  # nothing further is handled until the stop cancels us
        await self.app.crash(error)

    def note_failure(self, error: Exception) -> None:
        """Note a failure that came between the last tick and the stop.

        The process ends, and has to say why.
        """
        if _is_of_user(error):
            self.unusable = self.unusable or f"what is stored cannot be used: {error}"
        else:
            self.failure = error

    def fence(self) -> None:
        """Stop the worker because another process has taken its name.

        The other process has the name in the group, and our partitions. Nothing further is handled.
        """
        self.worker.give_up()
        self._stop_for(fenced(self.worker.config.kafka))

    def _stop_for(self, reason: str) -> None:
        self.unusable = self.unusable or reason
        if self.stop is not None:
            self.stop()


def _is_of_user(error: Exception) -> bool:
    return isinstance(error, StateError) and not isinstance(error, DamagedStateError)


def create_app(config: Config) -> Application:
    """Build the application. Nothing is started and no broker is asked.

    Parameters
    ----------
    config
        The checked configuration.

    Raises
    ------
    ConfigError
        A file of kafka.security cannot be used.
    """
    kafka = config.kafka
    rebalance_s = max(60.0, config.web.stuck_after_s + 30)
    app = ExactApp(
        kafka.group,
        broker=[f"kafka://{broker}" for broker in kafka.brokers],
        broker_credentials=_credentials(kafka),
        store="memory://",
        autodiscover=False,
        topic_partitions=kafka.partitions,
        topic_disable_leader=True,
        topic_allow_declare=False,  # `attributary topics create` does, with the settings that state needs
        table_standby_replicas=0,
        web_enabled=False,  # Faust's own pages would show every table
        consumer_auto_offset_reset="earliest",
        consumer_group_instance_id=kafka.instance_id,
        broker_client_id="attributary" if kafka.instance_id is None else client_id(),
        consumer_max_fetch_size=4_000_000,
        producer_max_request_size=kafka.max_record_bytes,
        producer_max_batch_size=MAX_BATCH_BYTES,
        producer_compression_type=None,  # states are compressed already
        stream_wait_empty=False,  # observations are held unacknowledged until their checkpoint
        # Of deployments: what a poll has brought of observations goes to its inbox at once. A full one stops all.
        stream_buffer_maxsize=256,
        recovery_buffer_size=4,  # states are large: few at a time
        broker_commit_every=2**31 - 1,  # the checkpoint commits; Faust has nothing to
        broker_session_timeout=kafka.session_timeout_s,
        broker_heartbeat_interval=kafka.session_timeout_s / 10,
        # While a partition's owner is in a long step, a rebalance waits for it: as long as /livez calls that healthy.
        broker_rebalance_timeout=rebalance_s,
        broker_request_timeout=max(rebalance_s, kafka.session_timeout_s)
        + 30,  # joining is a request that lasts so long
        # Never leave the group for not polling: with a slow model that is back-pressure, and the member would not
        # come back by itself. The watchdog tells a step that hangs.
        broker_max_poll_interval=2_000_000,
        # What is unpacked and waits for the streams, of 4 MB per partition that are fetched ahead.
        broker_max_poll_records=1000,
        producer_request_timeout=config.request_timeout_s,
        worker_redirect_stdouts=False,
    )
    table = app.Table(
        "state",
        key_type=bytes,
        value_type=bytes,
        partitions=kafka.partitions,
        recovery_buffer_size=16,  # records of up to 1 MB; upstream's 1000 would be held at once
    )
    table.sink = StateRecords(wanted_names(config.finder), seal_of(config))
    table.read_again = partial(read_again, config, table.sink)
    topics = kafka.topics
    names = [
        topics.importances,
        topics.incidents,
        topics.dead_letters,
        *([kafka.shards] if config.sharded else []),
    ]
    outputs = {name: _topic(app, name) for name in names}
    app.intake = Intake(topics.observations)
    worker = Worker(app, config, table, outputs)
    board = SourcesBoard()
    web = WebServer(config, worker.view, board)
    application = Application(app, worker, web)
    if config.sources and config.run.mapper:
        application.mapper = MapperService(config, board)
    if followed(config):
        # One of the group: the owner of partition 0.
        is_ours = partial(_owns_first, worker)
        application.poller = AliasPoller(config, worker.view.registry, is_ours)
    app.on_fenced = application.fence
    app.before_recovery = worker.fence_others
    _register_agent(application, "attributary.observations", topics.observations, worker.take)
    _register_agent(application, "attributary.models", topics.models, worker.handle_control)
    if config.sharded:
        _register_agent(application, "attributary.shards", kafka.shards, worker.handle_shard)
    _register_lifecycle(application)
    return application


def _owns_first(worker: Worker) -> bool:
    return worker.view.activity.ready and 0 in worker.assigned


def _credentials(kafka: KafkaConfig) -> Any:
    """Return TLS and SASL credentials for Faust; None without either.

    They are for its consumer and its producer.
    """
    options = client_options(kafka)
    context = options.get("ssl_context")
    if not kafka.security.sasl:
        return None if context is None else faust.SSLCredentials(context)
    return faust.SASLCredentials(
        username=options["sasl_plain_username"],
        password=options["sasl_plain_password"],
        mechanism=options["sasl_mechanism"],
        ssl_context=context,
    )


def _topic(app: faust.App, name: str) -> Any:
    # Raw bytes: what Faust cannot decode it acknowledges at once and forgets. We decode, and dead-letter. Without acks:
    # the checkpoint commits, and Faust would keep a gap between any two fetches for ever.
    return app.topic(
        name,
        key_type=bytes,
        value_type=bytes,
        key_serializer="raw",
        value_serializer="raw",
        allow_empty=True,
        acks=False,
    )


def _register_agent(application: Application, name: str, topic: str, handle: Callable[[Any], Awaitable[None]]) -> None:
    async def agent(stream: Any) -> None:
        async for event in stream.noack().events():
            try:
                await handle(event)
            except Exception as error:
                # Whatever is in a record ends in the dead letters, so this is delivery or storage: stop, so that the
                # restart resumes from the last checkpoint. Faust would restart the agent alone, past the record.
                await application.end(error)
                raise
            await asyncio.sleep(0)  # a full buffer must not starve timers and signals

    app = application.app
    app.agent(_topic(app, topic), name=name, concurrency=1)(agent)


def _register_lifecycle(application: Application) -> None:
    app, worker = application.app, application.worker
    activity, topic = worker.view.activity, worker.config.kafka.topics.observations

    async def tick() -> None:
        # Waits for nothing: while a timer's call lasts Faust starts no other, and says so at WARNING.
        try:
            if not is_ready():
                activity.ready = False
            elif not activity.ready:
                worker.under_way.start("take over", take_over)
            worker.tick()
        except Exception as error:
            await application.end(error)
            raise

    async def take_over() -> None:
        if not is_ready():
            return  # the partitions may have gone since the tick, and nothing releases what is adopted now
        ours = sorted(tp for tp in app.consumer.assignment() if tp.topic == topic)
        generation = app.consumer_generation_id
        await worker.adopt(ours, generation)
        if is_ready() and app.consumer_generation_id == generation:
            logger.info("ready: partitions %s of %s", [tp.partition for tp in ours], topic)
            # Not awaited: the answer can be as late as the next record, and the loop is to be seen alive.
            app.add_future(worker.ask_backlog_ends())
            activity.ready = True
            gc.collect()  # models of partitions that have gone refer to themselves

    def is_ready() -> bool:
        # `rebalancing` lasts until the new partitions' state is recovered; before the first one `completed` is unset.
        recovery = app.tables.recovery
        return recovery.completed.is_set() and not app.rebalancing and not recovery.in_recovery

    app.timer(1.0, name="attributary.tick")(tick)

    async def revoked(_app: faust.App, revoked: Any, **_: Any) -> None:
        activity.ready = False
        await worker.release(tp.partition for tp in revoked if tp.topic == topic)

    beside: list[asyncio.Task[None]] = []
    polling: list[asyncio.Task[None]] = []

    async def run_beside() -> None:
        # Of no use to the worker's own service: whatever goes wrong with a source or a registry ends nothing else.
        if application.mapper is not None:
            beside.append(asyncio.ensure_future(application.mapper.run()))
        if application.poller is not None:
            polling.append(asyncio.ensure_future(application.poller.run()))

    app.task(run_beside)

    async def stopping(_app: faust.App, **_: Any) -> None:
        activity.ready = False
        if application.mapper is not None:
            application.mapper.stop()
        for task in polling:
            task.cancel()
        application.left = list(worker.assigned.values())
        try:
            worker.under_way.check()
        except Exception as error:  # noqa: BLE001 - whatever a tick would have ended the process with
            application.note_failure(error)
        await worker.release()
        await asyncio.gather(*(ends_quietly(task, _BESIDE_STOPS_WITHIN_S) for task in beside))

    # Nothing else refers to the two: a weak reference would be gone before the first signal.
    app.on_partitions_revoked.connect(revoked, weak=False)
    app.on_before_shutdown.connect(stopping, weak=False)
