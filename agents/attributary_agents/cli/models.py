"""`attributary models deploy` and `list`: deploys a new version of a model, lists what is deployed."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import yaml

from attributary_topics import Deployment, InvalidRecordError, encode_json

from ..config.settings import Config
from ..errors import AttributaryError, DeploymentError
from ..models.artefacts import check_ending, read_artefact, sha256_of
from ..models.deployments import Job, decode, prepare
from ..models.from_mlflow.loading import fetched_files, pinned
from .commands import Commands, check_model_id, config_option, json_option, say
from .models_state import export, import_, reset
from .progress import told_when_slow


@click.group(cls=Commands)
def models() -> None:
    """Deploy new versions of models, list them; export, import or reset what is stored of a model."""


for _command in (export, import_, reset):
    models.add_command(_command)


@models.command("deploy")
@click.argument("model_id")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@config_option
@click.option("--version", "version", help="Give the new version this name. [default: what FILE says]")
@click.option(
    "--class",
    "class_path",
    metavar="PATH",
    help="Make a model of this class, a dotted path, instead of FILE.",
)
@click.option("--params", metavar="JSON", help="Give --class or --factory these arguments. [default: {}]")
@click.option(
    "--factory", metavar="MODULE:FUNCTION", help="Call this function, which returns a model, instead of FILE."
)
@click.option(
    "--artefact",
    metavar="PATH",
    help="Take the model of this file below artefacts.directory, .skops, .joblib, .onnx or .pkl, instead of FILE.",
)
@click.option(
    "--mlflow",
    metavar="models:/NAME/VERSION",
    help="Take this version of MLflow's registry, or the one that models:/NAME@ALIAS names now, or a folder below "
    "artefacts.directory, instead of FILE.",
)
@click.option(
    "--partition",
    type=click.IntRange(min=0),
    help="Send to this partition, that of the model's observations. [default: the one that Kafka's own clients choose; "
    "of a sharded model all]",
)
@click.option("--dry-run", is_flag=True, help="Check everything and send nothing.")
@json_option
def deploy(
    config: Config,
    model_id: str,
    file: Path | None,
    version: str | None,
    class_path: str | None,
    params: str | None,
    factory: str | None,
    artefact: str | None,
    mlflow: str | None,
    partition: int | None,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Let a new version of MODEL_ID take over, explained against the present one.

    FILE, in YAML or JSON, or the options describe the new version:

    \b
        version: "2"
        model:
          class: river.forest.ARFClassifier
          params: {n_models: 20, seed: 1}

    `model` may be a list of steps, a function, {factory: "module:function", params: {…}}, or an address,
    {served: "http://credit/v2/models/credit-2", …}; instead of it FILE may have `artefact: credit-2.pkl` or
    `mlflow: models:/credit/2`, each with its `sha256`, which --artefact and --mlflow compute. The model is made and
    checked here as the workers will, so run this with their configuration and packages. It takes over before the next
    observation that a worker handles.

    \b
        attributary models deploy credit next.yaml --dry-run
        attributary models deploy credit --version 2 --class river.forest.ARFClassifier --params '{"n_models": 20}'
        attributary models deploy credit --version 3 --factory mymodels:build --params '{"depth": 6}'
        attributary models deploy credit --version 4 --artefact credit-4.onnx
        attributary models deploy credit --mlflow models:/credit@champion
    """
    check_model_id(config, model_id)
    if partition is not None and model_id in config.sharded:
        raise AttributaryError(f"{model_id} is sharded: its version goes to all partitions; leave --partition out")
    value = _value(config, file, version, class_path, params, factory, artefact, mlflow)
    deployment = checked(config, model_id, value)
    said = {"model_id": model_id, "version": deployment.version, **deployment.spec}
    if dry_run:
        if as_json:
            click.echo(json.dumps({**said, "sent": False}))
        else:
            say(f"version {deployment.version} can be deployed")
        return
    from ..kafka.clients import client_log_muted
    from ..kafka.deployments import send_deployment
    from ..kafka.topics import check_topics

    with told_when_slow(config), client_log_muted():
        check_topics(config, config.kafka.topics.models)
        places = asyncio.run(send_deployment(config, model_id, encode_json(value), partition))
    topic = config.kafka.topics.models
    if as_json:
        place, offset = places[0]
        found: dict[str, Any] = {"partition": place, "offset": offset}
        if len(places) > 1:
            found = {"places": [{"partition": place, "offset": offset} for place, offset in places]}
        click.echo(json.dumps({**said, "sent": True, "topic": topic, **found}))
    else:
        where = ", ".join(f"{topic}[{place}]@{offset}" for place, offset in places)
        say(f"version {deployment.version} of {model_id} is deployed: {where}")


def checked(config: Config, model_id: str, value: Any) -> Deployment:
    """Return the deployment that a worker makes of this value.

    Raises
    ------
    DeploymentError
        A worker would make a dead letter of it.
    """
    try:
        deployment = decode(config, model_id.encode(), encode_json(value))
    except InvalidRecordError as error:
        raise DeploymentError(str(error), error.reason) from None
    except (TypeError, ValueError) as error:  # YAML has dates and NaN
        raise DeploymentError(f"not JSON: {error}", "invalid_json") from None
    with fetched_files(config, deployment.spec) as folder:
        prepare(Job.of(config, deployment, folder), in_full=True)
    return deployment


def _value(
    config: Config,
    file: Path | None,
    version: str | None,
    class_path: str | None,
    params: str | None,
    factory: str | None,
    artefact: str | None,
    mlflow: str | None,
) -> dict[str, Any]:
    ways = {
        "FILE": file,
        "--class": class_path,
        "--factory": factory,
        "--artefact": artefact,
        "--mlflow": mlflow,
    }
    given = [name for name, way in ways.items() if way is not None]
    if len(given) != 1:
        raise AttributaryError(f"give exactly one of {', '.join(ways)}; got {' and '.join(given) or 'none'}")
    if params is not None and class_path is None and factory is None:
        raise AttributaryError("--params are the arguments of --class or --factory, of which none is given")
    value: dict[str, Any] = {} if file is None else _read(file)
    if class_path is not None:
        value = {"model": {"class": class_path, "params": _json("--params", params or "{}")}}
    elif factory is not None and params is not None:
        value = {"model": {"factory": factory, "params": _json("--params", params)}}
    elif factory is not None:
        value = {"factory": factory}
    elif artefact is not None:
        value = {"artefact": artefact, "sha256": _hash(config, artefact)}
    elif mlflow is not None:
        value = pinned(config, mlflow)
    value = _with_artefact(config, value)
    if version is not None:
        value = {"version": version, **{name: part for name, part in value.items() if name != "version"}}
    if "version" not in value:
        raise AttributaryError("name the new version with --version" + (f", or in {file}" if file else ""))
    return value


def _with_artefact(config: Config, value: dict[str, Any]) -> dict[str, Any]:
    """Return a version as the topic has it; a file or a model of MLflow may be named as in the configuration."""
    model = value.get("model")
    for key, way in (("file", "artefact"), ("mlflow", "mlflow")):
        if isinstance(model, dict) and isinstance(model.get(key), str):
            value = {**{name: part for name, part in value.items() if name != "model"}, way: model[key]}
            value |= {"sha256": model["sha256"]} if "sha256" in model else {}
    artefact, mlflow = value.get("artefact"), value.get("mlflow")
    if isinstance(artefact, str) and "sha256" not in value:
        raise AttributaryError(f"{artefact} has no hash; write sha256: {_hash(config, artefact)}")
    if isinstance(mlflow, str) and "sha256" not in value:
        found = pinned(config, mlflow)
        raise AttributaryError(f"{mlflow} has no hash; write mlflow: {found['mlflow']}, sha256: {found['sha256']}")
    return value


def _hash(config: Config, artefact: str) -> str:
    check_ending(artefact)
    return sha256_of(read_artefact(config.artefacts.directory, artefact, None))


def _read(file: Path) -> dict[str, Any]:
    try:
        value = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise AttributaryError(f"cannot read {file}: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise AttributaryError(f"{file} is not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(value, dict):
        raise AttributaryError(f"{file}: expected a mapping with `version` and `model`, got {type(value).__name__}")
    return value


def _json(option: str, text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise AttributaryError(f"{option}: expected a JSON object, got {text!r} ({error})") from None


@models.command("list")
@config_option
@json_option
def models_list(config: Config, as_json: bool) -> None:
    """Print, for each configured model, the configured version and the one in the models topic.

    \b
        attributary models list --config attributary.yaml
    """
    from ..kafka.clients import client_log_muted
    from ..kafka.deployments import read_deployments
    from ..kafka.topics import check_topics

    with told_when_slow(config), client_log_muted():
        check_topics(config, config.kafka.topics.models)
        found = asyncio.run(read_deployments(config))
    rows = []
    of_templates = sorted(model_id for model_id in found if config.finder.template_of(model_id) is not None)
    for model_id in (*config.models, *of_templates):
        model = config.settings_of(model_id)
        configured = model.version if model.registered is None else str(model.registered)
        row: dict[str, Any] = {"model_id": model_id, "configured": configured, "deployed": None}
        if model_id in found:
            said, *others = found[model_id]
            row["at"] = f"{said.topic}[{said.partition}]@{said.offset}"
            row["time"] = datetime.fromtimestamp(said.timestamp / 1000, UTC).isoformat(timespec="seconds")
            try:
                deployment = decode(config, said.key, said.value)
                row |= {"deployed": deployment.version, **deployment.spec}
                if model.sharded:  # each shard takes it from its own partition
                    have = [one.partition for one in (said, *others) if one.value == said.value]
                    row["lacking"] = sorted({*range(config.kafka.partitions)}.difference(have))
            except InvalidRecordError as error:
                row["fault"] = str(error)
        rows.append(row)
    if as_json:
        click.echo(json.dumps(rows, indent=2))
        return
    for row in rows:
        say(*_line(row))


def _line(row: dict[str, Any]) -> tuple[str, ...]:
    head = row["model_id"], f"configured {row['configured']}"
    if "at" not in row:
        return *head, "nothing deployed"
    what = row.get("fault") or next(
        f"{way} {json.dumps(row[way])}" for way in ("model", "factory", "artefact", "mlflow") if way in row
    )
    version = "a dead letter" if "fault" in row else f"deployed {row['deployed']}"
    if lacking := ", ".join(map(str, row.get("lacking", ()))):
        version += f", but not to the shards of partitions {lacking}: deploy it again"
    return *head, version, f"{row['time']} {row['at']}", what
