"""`attributary check`: a dress rehearsal of every model, and then of the broker."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from attributary_explainers.wording import show_names

from ..config.settings import Config
from ..errors import AttributaryError
from ..logs import without_user
from .commands import config_option, drop_option, json_option, open_observations, say, target_option, topic_remark
from .progress import holdouts_told, told_when_slow

if TYPE_CHECKING:
    from ..rehearsal.rehearsal import Rehearsal
    from ..rehearsal.sections import Trial

N_OF_FILE = 1000
"""Lines of a file that are tried as records of a source."""


@click.command()
@config_option
@click.option(
    "--sample",
    metavar="FILE|N",
    help="Try the models with the first rows of this file (CSV, JSON lines, Parquet), or with the last N records that "
    "the observations topic has of each model, or the topics of each source. [default: rows made up of the declared "
    "features]",
)
@click.option(
    "--source",
    "source_name",
    metavar="NAME",
    help="With --sample FILE: its lines are values of records of this source, or of these labels, in JSON. [default: "
    "they are observations]",
)
@target_option
@drop_option
@click.option(
    "--model",
    "model_id",
    metavar="ID",
    help="Try this model only; needed with FILE where there are several. [default: all]",
)
@click.option("--offline", is_flag=True, help="Leave the broker, the topics and the stored state alone.")
@json_option
def check(
    config: Config,
    sample: str | None,
    source_name: str | None,
    target: str | None,
    drop: tuple[str, ...],
    model_id: str | None,
    offline: bool,
    as_json: bool,
) -> None:
    """Rehearse every model, then check the broker and its topics: all that `run` needs, without running.

    Each model is made, predicts, is explained, learns, and is stored and restored, by the functions that a worker
    uses. What is printed is what came out: the last prediction, the loss and why it is that one, whether there is a
    fast path, the time of a step and the size of the state. Topics and stored states are only read.

    \b
        attributary check --sample observations.csv --target label
        attributary check --sample 50            # the last 50 records of each model
        attributary check --sample 1000          # with sources: the last 1000 records of each one's topics
        attributary check --sample rentals.jsonl --source rentals
        attributary check --offline              # no broker yet

    The exit code is 0; or 2 where a model cannot work, none of its rows can be used, or the broker or a topic is not as
    configured.
    """
    from attributary_explainers.core import is_compiled

    from ..monitoring.series_limits import check_series
    from ..rehearsal.rehearsal import MADE_UP, rehearse
    from ..rehearsal.report import delay_lines, report_lines, trial_lines
    from ..rehearsal.sections import label_delays

    if model_id is not None and model_id not in config.models and config.find(model_id) is None:
        raise AttributaryError(f"--model: expected one of {show_names(config.models)}, got {model_id!r}")
    model_ids = list(config.models) if model_id is None else [model_id]
    faults: list[str] = []
    rows = _rows(config, model_ids, sample, source_name, target, drop, offline, faults)
    trials = rows.trials or []
    faults += [fault for trial in trials for fault in trial.faults]
    rehearsals = []
    for name in model_ids:
        values = rows.values.get(name)
        with holdouts_told():
            rehearsal = rehearse(rows.config, name, values, rows.where if values is not None else MADE_UP, rows.more)
        rehearsal.sought = rows.sought if values is None else None
        rehearsals.append(rehearsal)
    try:
        check_series(config)
    except AttributaryError as error:
        faults.append(str(error))
    remarks: list[str] = []
    if not offline and not faults:
        faults += _broker_faults(config, remarks)
    is_ok = not faults and all(
        rehearsal.works or (rehearsal.rows is None and not rehearsal.problem) for rehearsal in rehearsals
    )
    delays = label_delays(config, trials)
    if as_json:
        said = {
            "ok": is_ok,
            "core": "compiled" if is_compiled() else "plain Python",
            "broker": None if offline else faults or "ok",
            "topics": remarks,
            "state": None if offline else config.state.doubt or "ok",
            "models": {
                rehearsal.model_id: {**asdict(rehearsal), "tried": rehearsal.n_used > 0 and not rehearsal.untried}
                for rehearsal in rehearsals
            },
        }
        if rows.trials is not None:
            sections = {trial.key: asdict(trial) for trial in trials}
            for section in sections.values():
                del section["mapped"], section["key"]
            said["sources"] = {**sections, "waiting": {name: asdict(delay) for name, delay in delays.items()}}
        click.echo(without_user(json.dumps(said, default=str)))
    else:
        lines = [line for trial in trials for line in trial_lines(trial)]
        lines += [line for name, delay in delays.items() for line in delay_lines(name, delay)]
        lines += [line for rehearsal in rehearsals for line in report_lines(rehearsal)]
        if not is_compiled():
            lines.append(
                "core: plain Python, as it was not compiled: the same numbers, and explanations take many times longer"
            )
        if offline:
            lines.append("broker: not asked (--offline)")
        elif not faults:
            lines.append(f"broker: ok: topics at {', '.join(config.kafka.brokers)}")
        lines += map(topic_remark, remarks)
        if not offline and config.state.doubt:
            lines.append(f"state: {config.state.doubt}")
        for line in lines:
            say(line)
    if not is_ok:
        say(f"attributary: {_summary(rehearsals, faults)}", err=True)
    elif not as_json:
        say(_summary(rehearsals, faults))
    sys.exit(0 if is_ok else 2)


@dataclass
class _Rows:
    """What the models are rehearsed with.

    Attributes
    ----------
    config
        The configuration that the rows are for.
    where
        Where they are from.
    values, more
        By model the values of records, and those that are looked at beside them. Of the others rows are made up.
    sought
        Where rows were looked for.
    trials
        What sampled records of topics that are not ours become; None where no source is tried.
    """

    config: Config
    where: str = ""
    values: dict[str, list[bytes]] = field(default_factory=dict)
    more: list[bytes] = field(default_factory=list)
    sought: str | None = None
    trials: list[Trial] | None = None


def _rows(
    config: Config,
    model_ids: list[str],
    sample: str | None,
    source: str | None,
    target: str | None,
    drop: tuple[str, ...],
    offline: bool,
    faults: list[str],
) -> _Rows:
    """Read the sample; a broker's fault joins the others."""
    is_file = sample is not None and not sample.isdecimal()
    if source is not None:
        if sample is None or not is_file:
            raise AttributaryError("--source goes with --sample FILE, whose lines are values of its records")
        if not config.sources:
            raise AttributaryError("--source: the configuration has no sources")
        from ..rehearsal.sections import try_file

        return _mapped(config, try_file(config, source, Path(sample), N_OF_FILE))
    if sample is None:
        return _Rows(config)
    if is_file:
        return _of_file(config, model_ids, Path(sample), target, drop)
    if offline:
        raise AttributaryError("--sample N reads the observations topic, and --offline leaves it alone: give a file")
    if int(sample) < 1:
        raise AttributaryError(f"--sample: expected a file, or at least 1 record, got {sample}")
    from ..kafka.clients import client_log_muted
    from ..rehearsal.sections import try_topics
    from ..sources.samples import MOST, read_observations

    topic = config.kafka.topics.observations
    try:
        if config.sources:
            return _mapped(config, try_topics(config, int(sample)))
        with client_log_muted():
            values = asyncio.run(read_observations(config, model_ids, int(sample)))
    except AttributaryError as error:
        faults.append(str(error))
        return _Rows(config)
    sought = f"the last {MOST} records of each partition of {topic}"
    return _Rows(config, f"the last records of {topic}", values, sought=sought)


def _of_file(config: Config, model_ids: list[str], path: Path, target: str | None, drop: tuple[str, ...]) -> _Rows:
    from ..files.source import SAMPLE
    from ..kafka.observations import encode_value
    from ..rehearsal.rehearsal import N_ROWS

    if len(model_ids) > 1:
        raise AttributaryError(f"whose observations are in {path}? Name one with --model: {', '.join(model_ids)}")
    source = open_observations(path, target, drop, config.settings_of(model_ids[0]))
    values = [encode_value(value) for value in islice(source.values(), SAMPLE)]
    return _Rows(config, f"rows of {path}", {model_ids[0]: values[:N_ROWS]}, values[N_ROWS:])


def _mapped(config: Config, trials: list[Trial]) -> _Rows:
    from ..rehearsal.rehearsal import with_labels
    from ..rehearsal.sections import values_of

    sought = "what the sampled records of sources become"
    values = values_of(trials, config)
    return _Rows(with_labels(config), "mapped records", values, sought=sought, trials=trials)


def _broker_faults(config: Config, remarks: list[str]) -> list[str]:
    """Return why the broker or what is stored cannot be used; what is only below what it could be joins the remarks."""
    from ..kafka.admin import check_group
    from ..kafka.topics import changelog_remarks, check_topics, topics_there
    from ..kafka.transactions import check_transactions
    from ..sources.mappers.preflight import check_origin_topics
    from ..state.admin import check_stored
    from ..state.objects import check_objects

    try:
        with told_when_slow(config):
            check_origin_topics(config)
            check_topics(config)
            # Before the others, which would wait for brokers that are away.
            there = topics_there(config)
            if there.doubt:
                return [there.doubt]
            check_group(config)
            if config.is_exact:
                asyncio.run(check_transactions(config))
        check_objects(config)
        size = check_stored(config)
        remarks += there.remarks(config)
    except AttributaryError as error:  # the next would say the same once more
        return [str(error)]
    remarks += changelog_remarks(config, size.read, size.live)
    return []


def _summary(rehearsals: list[Rehearsal], faults: list[str]) -> str:
    n_bad = sum(rehearsal.problem is not None for rehearsal in rehearsals)
    n_untried = sum(rehearsal.problem is None and not rehearsal.works for rehearsal in rehearsals)
    said = [f"{len(rehearsals) - n_bad - n_untried} of {len(rehearsals)} models work"]
    said += [f"{n_untried} not tried"] if n_untried else []
    said += [f"{n_bad} cannot work"] if n_bad else []
    return "; ".join([*said, *faults])
