"""`attributary check`: a dress rehearsal of every model, and then of the broker."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict
from itertools import chain, islice
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
    from ..rehearsal.attached_sample import Attached
    from ..rehearsal.finding import Rehearsal

MAPPED = "mapped records"

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
    from ..rehearsal.attached_report import as_data, attached_lines
    from ..rehearsal.attached_sample import whole_observations
    from ..rehearsal.report import report_lines

    model_ids = _chosen(config, model_id)
    faults: list[str] = []
    attached = _attached(config, sample, source_name, offline, faults)
    if attached is not None:
        faults += attached.faults
        whole = whole_observations(config)
        values = {name: attached.values[name] for name in model_ids if name in attached.values}
        rehearsals = [_rehearsed(whole, each, values.get(each), [], MAPPED) for each in model_ids]
    else:
        values, more, rows = _sample(config, model_ids, sample, target, drop, offline, faults)
        rehearsals = [_rehearsed(config, each, values.get(each), more, rows) for each in model_ids]
    try:
        check_series(config)
    except AttributaryError as error:
        faults.append(str(error))
    remarks: list[str] = []
    if not offline and not faults:
        faults += _broker_faults(config, remarks)
    is_ok = not faults and all(found.works or (found.rows is None and not found.problem) for found in rehearsals)
    if as_json:
        broker = None if offline else faults or "ok"
        models = {
            found.model_id: {**asdict(found), "tried": found.n_used > 0 and not found.untried} for found in rehearsals
        }
        said = {
            "ok": is_ok,
            "core": "compiled" if is_compiled() else "plain Python",
            "broker": broker,
            "topics": remarks,
            "state": None if offline else config.state.doubt or "ok",
            "models": models,
        } | ({} if attached is None else {"sources": as_data(attached)})
        click.echo(without_user(json.dumps(said, default=str)))
    else:
        for line in [] if attached is None else attached_lines(attached):
            say(line)
        for line in chain.from_iterable(map(report_lines, rehearsals)):
            say(line)
        if not is_compiled():
            say("core: plain Python, as it was not compiled: the same numbers, and explanations take many times longer")
        if offline:
            say("broker: not asked (--offline)")
        elif not faults:
            say(f"broker: ok: topics at {', '.join(config.kafka.brokers)}")
        for remark in remarks:
            say(topic_remark(remark))
        if not offline and config.state.doubt:
            say(f"state: {config.state.doubt}")
    if not is_ok:
        say(f"attributary: {_summary(rehearsals, faults)}", err=True)
    elif not as_json:
        say(_summary(rehearsals, faults))
    sys.exit(0 if is_ok else 2)


def _chosen(config: Config, model_id: str | None) -> list[str]:
    if model_id is None:
        return list(config.models)
    if model_id not in config.models and config.find(model_id) is None:
        raise AttributaryError(f"--model: expected one of {show_names(config.models)}, got {model_id!r}")
    return [model_id]


def _attached(
    config: Config, sample: str | None, source: str | None, offline: bool, faults: list[str]
) -> Attached | None:
    """Return what sampled records of topics that are not ours become; None where no source is tried.

    A broker's fault joins the others.
    """
    from ..rehearsal.attached_sample import Attached, try_file, try_topics

    if source is not None:
        if sample is None or sample.isdecimal():
            raise AttributaryError("--source goes with --sample FILE, whose lines are values of its records")
        if not config.sources:
            raise AttributaryError("--source: the configuration has no sources")
        return try_file(config, source, Path(sample), N_OF_FILE)
    if not config.sources or sample is None or not sample.isdecimal() or offline or int(sample) < 1:
        return None
    try:
        return try_topics(config, int(sample))
    except AttributaryError as error:
        faults.append(str(error))
        return Attached()


def _sample(
    config: Config,
    model_ids: list[str],
    sample: str | None,
    target: str | None,
    drop: tuple[str, ...],
    offline: bool,
    faults: list[str],
) -> tuple[dict[str, list[bytes]], list[bytes], str]:
    """Return the values of each model's rows, those that are looked at beside them, and where they are from.

    A broker's fault joins the others.
    """
    from ..files.source import SAMPLE
    from ..kafka.observations import encode_value
    from ..rehearsal.finding import MADE_UP
    from ..rehearsal.rows import N_ROWS

    if sample is None:
        return {}, [], MADE_UP
    if not sample.isdecimal():
        if len(model_ids) > 1:
            raise AttributaryError(f"whose observations are in {sample}? Name one with --model: {', '.join(model_ids)}")
        source = open_observations(Path(sample), target, drop, config.settings_of(model_ids[0]))
        values = [encode_value(value) for value in islice(source.values(), SAMPLE)]
        return {model_ids[0]: values[:N_ROWS]}, values[N_ROWS:], f"rows of {sample}"
    if offline:
        raise AttributaryError("--sample N reads the observations topic, and --offline leaves it alone: give a file")
    if int(sample) < 1:
        raise AttributaryError(f"--sample: expected a file, or at least 1 record, got {sample}")
    from ..kafka.clients import client_log_muted
    from ..kafka.observations import read_sample

    topic = config.kafka.topics.observations
    try:
        with client_log_muted():
            found = asyncio.run(read_sample(config, model_ids, int(sample)))
    except AttributaryError as error:
        faults.append(str(error))
        return {}, [], MADE_UP
    return {name: values for name, values in found.items() if values}, [], f"the last records of {topic}"


def _rehearsed(config: Config, model_id: str, values: list[bytes] | None, more: list[bytes], rows: str) -> Rehearsal:
    from ..rehearsal.finding import MADE_UP
    from ..rehearsal.rehearsal import rehearse

    with holdouts_told():
        found = rehearse(config, model_id, values, MADE_UP if values is None else rows, more)
    if values is None and rows != MADE_UP:
        found.sought = _sought(config) if rows != MAPPED else "what the sampled records of sources become"
    return found


def _sought(config: Config) -> str:
    from ..kafka.observations import MOST_SAMPLED

    return f"the last {MOST_SAMPLED} records of each partition of {config.kafka.topics.observations}"


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
    n_bad = sum(found.problem is not None for found in rehearsals)
    n_untried = sum(found.problem is None and not found.works for found in rehearsals)
    said = [f"{len(rehearsals) - n_bad - n_untried} of {len(rehearsals)} models work"]
    said += [f"{n_untried} not tried"] if n_untried else []
    said += [f"{n_bad} cannot work"] if n_bad else []
    return "; ".join([*said, *faults])
