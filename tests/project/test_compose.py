"""docker-compose.yml, .env and the image's files: valid, pinned, without rights, and of one piece with the checkout."""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.compose import ROOT, Compose, image_environment, read_env
from support.monitoring import program

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import load_config
from attributary_agents.demo.endless_stream import DriftStream

COMPOSE = Compose()
SERVICES = sorted(COMPOSE.services)
OURS = [name for name in SERVICES if COMPOSE.services[name]["image"].startswith("attributary:")]
ONE_SHOT = ("topics",)
WITHOUT_ADDRESS = (*ONE_SHOT, "producer")
EXTRAS = ("worker", "object-store", "avro", "protobuf", "served", "serve")
DOCKERFILE = (ROOT / "deploy/image/Dockerfile").read_text()


def compose_command() -> list[str] | None:
    """`docker compose`, or the older program; None where there is neither."""
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]) and subprocess.run([*command, "version"], capture_output=True).returncode == 0:
            return command
    return None


def test_docker_compose_takes_the_file() -> None:
    command = compose_command()
    if command is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("docker compose is missing (Debian: docker-compose)")
    else:
        done = subprocess.run([*command, "config"], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert set(yaml.safe_load(done.stdout)["services"]) == set(SERVICES)
        # It does look: a key that is none is refused.
        wrong = COMPOSE.text.replace("    mem_limit: 128m\n", "    mem_limits: 128m\n")
        assert wrong != COMPOSE.text
        refused = subprocess.run([*command, "-f", "-", "config"], cwd=ROOT, capture_output=True, text=True, input=wrong)
        assert refused.returncode != 0
        assert "mem_limits" in refused.stderr


PROXIED = ROOT / "deploy/oauth2-proxy/compose.yaml"
GIVEN = {
    **dict.fromkeys(("PAGE_TOKEN", "COOKIE_SECRET", "OIDC_CLIENT_SECRET"), "0123456789abcdef"),
    **dict.fromkeys(("OIDC_ISSUER", "PAGE_URL"), "https://a.example"),
    **dict.fromkeys(("OIDC_CLIENT_ID", "EMAIL_DOMAIN"), "a"),
}


def test_the_proxy_gives_the_page_the_token_that_it_asks_for() -> None:
    services = yaml.safe_load(PROXIED.read_text())["services"]
    page, proxy = services["page"]["environment"], services["oauth2-proxy"]["environment"]
    assert re.match(r"\$\{(\w+)", page[page["ATTRIBUTARY_SERVE__TOKEN_ENV"]])[1] == "PAGE_TOKEN"  # type: ignore[index]
    assert proxy["OAUTH2_PROXY_BASIC_AUTH_PASSWORD"] == "${PAGE_TOKEN}"
    assert proxy["OAUTH2_PROXY_PASS_BASIC_AUTH"] == "true"
    assert (
        proxy["OAUTH2_PROXY_UPSTREAMS"]
        == f"http://page:{load_config(ROOT / 'deploy/demo/attributary.yaml').serve.port}/"
    )
    assert set(re.findall(r"\$\{(\w+):\?", PROXIED.read_text())) == set(GIVEN), "no secret is in the file"
    for name in ("read_only", "cap_drop", "security_opt"):
        assert services["oauth2-proxy"][name] == COMPOSE.services["page"][name]
    assert re.fullmatch(r".*:v\d+\.\d+\.\d+", services["oauth2-proxy"]["image"])


def test_docker_compose_takes_the_proxy_too() -> None:
    command = compose_command()
    if command is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("docker compose is missing (Debian: docker-compose)")
    else:
        files = ["-f", "docker-compose.yml", "-f", str(PROXIED.relative_to(ROOT))]
        done = subprocess.run(
            [*command, *files, "config"], cwd=ROOT, capture_output=True, text=True, env={**os.environ, **GIVEN}
        )
        assert done.returncode == 0, done.stderr
        page = yaml.safe_load(done.stdout)["services"]["page"]
        assert page["environment"]["PAGE_TOKEN"] == GIVEN["PAGE_TOKEN"]


def test_the_services_are_those_that_are_promised() -> None:
    promised = "kafka topics worker-1 worker-2 page producer prometheus alertmanager grafana"
    assert sorted(promised.split()) == SERVICES


def test_every_variable_has_a_value_in_env_and_every_value_is_used() -> None:
    assert COMPOSE.variables == set(read_env()) - {"COMPOSE_PROJECT_NAME"}


@pytest.mark.parametrize("name", SERVICES)
def test_no_service_has_rights_that_it_does_not_need(name: str) -> None:
    service = COMPOSE.services[name]
    user, _, _group = service["user"].partition(":")
    assert user.isdecimal(), "a number: Kubernetes and others check that it is not root"
    assert int(user) > 0
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert "privileged" not in service
    assert "cap_add" not in service
    assert "mem_limit" in service
    assert service["restart"] == ("no" if name in ONE_SHOT else "unless-stopped")


@pytest.mark.parametrize("name", SERVICES)
def test_images_are_pinned(name: str) -> None:
    repository, _, tag = COMPOSE.services[name]["image"].partition(":")
    assert re.fullmatch(r"v?\d+\.\d+\.\d+", tag), f"{repository}:{tag}"


@pytest.mark.parametrize("name", SERVICES)
def test_every_service_tells_whether_it_is_well(name: str) -> None:
    check = COMPOSE.services[name]["healthcheck"]
    if name in WITHOUT_ADDRESS:
        assert check == {"disable": True}
    else:
        assert check["test"][0] == "CMD", "no shell is needed"
        assert {"interval", "timeout", "start_period", "retries"} <= set(check)


def test_ports_are_open_on_loopback_only_and_no_two_are_the_same() -> None:
    published = [port for service in COMPOSE.services.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in published)
    hosts = [port.split(":")[1] for port in published]
    assert len(set(hosts)) == len(hosts) == 7


def test_everything_that_is_mounted_is_there() -> None:
    used = set()
    for name in SERVICES:
        for source, target, read_only in COMPOSE.mounts(name):
            if source.startswith("./"):
                assert (ROOT / source).is_dir(), f"{name}: {source}"
                assert any((ROOT / source).iterdir())
                assert read_only, f"{name}: {source} at {target}"
            else:
                used.add(source)
    assert used == set(COMPOSE.volumes)


def test_paths_inside_that_are_named_are_mounted() -> None:
    environment = COMPOSE.services["grafana"]["environment"]
    for name in ("GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH", "GF_PATHS_PROVISIONING"):
        assert COMPOSE.on_host("grafana", environment[name]).exists(), name
    providers = COMPOSE.on_host("grafana", f"{environment['GF_PATHS_PROVISIONING']}/dashboards").glob("*.yaml")
    for path in providers:
        for provider in yaml.safe_load(path.read_text())["providers"]:
            assert any(COMPOSE.on_host("grafana", provider["options"]["path"]).glob("*.json"))
    for name in ("prometheus", "alertmanager"):
        assert COMPOSE.on_host(name, COMPOSE.option(name, "--config.file")).is_file()
    data = {"prometheus": "--storage.tsdb.path", "alertmanager": "--storage.path"}
    for name, option in data.items():
        volumes = {target for source, target, _ in COMPOSE.mounts(name) if not source.startswith("./")}
        assert COMPOSE.option(name, option) in volumes
    # What the images' own programs write besides.
    store = f"{image_environment()['XDG_CACHE_HOME']}/attributary"
    assert store in {target for _, target, _ in COMPOSE.mounts("page")}
    kafka = COMPOSE.services["kafka"]["environment"]["KAFKA_LOG_DIRS"]
    assert kafka in {target for _, target, _ in COMPOSE.mounts("kafka")}


def test_grafana_asks_the_prometheus_of_the_file() -> None:
    environment = COMPOSE.services["grafana"]["environment"]
    assert environment["PROMETHEUS_URL"] == "http://prometheus:9090"
    sources = COMPOSE.on_host("grafana", f"{environment['GF_PATHS_PROVISIONING']}/datasources").glob("*.yaml")
    (source,) = [source for path in sources for source in yaml.safe_load(path.read_text())["datasources"]]
    assert source["url"] == "${PROMETHEUS_URL}"
    scraped = yaml.safe_load(COMPOSE.on_host("prometheus", "/etc/prometheus/prometheus.yml").read_text())
    assert source["jsonData"]["timeInterval"] == scraped["global"]["scrape_interval"]
    assert environment["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"


def test_services_start_after_what_they_need() -> None:
    conditions = {
        (name, needed): of["condition"]
        for name in SERVICES
        for needed, of in COMPOSE.services[name].get("depends_on", {}).items()
    }
    assert conditions == {
        ("topics", "kafka"): "service_healthy",
        ("worker-1", "topics"): "service_completed_successfully",
        ("worker-2", "topics"): "service_completed_successfully",
        ("page", "topics"): "service_completed_successfully",
        ("producer", "worker-1"): "service_healthy",
        ("producer", "worker-2"): "service_healthy",
        ("prometheus", "alertmanager"): "service_healthy",
        ("grafana", "prometheus"): "service_healthy",
    }


def test_a_worker_has_the_time_that_it_takes_to_stop() -> None:
    config = load_config(COMPOSE.on_host("worker-1", image_environment()["ATTRIBUTARY_CONFIG"]))
    for name in ("worker-1", "worker-2"):
        assert int(COMPOSE.services[name]["stop_grace_period"].rstrip("s")) > config.watchdog.stop_within_s


def test_the_configuration_is_that_of_the_services() -> None:
    config = load_config(COMPOSE.on_host("worker-1", image_environment()["ATTRIBUTARY_CONFIG"]))
    assert config.kafka.brokers == ["kafka:9092"]
    assert "INSIDE://kafka:9092" in COMPOSE.services["kafka"]["environment"]["KAFKA_ADVERTISED_LISTENERS"]
    targets = yaml.safe_load(COMPOSE.on_host("prometheus", "/etc/prometheus/targets/workers.yml").read_text())
    workers = [name for name in SERVICES if name.startswith("worker-")]
    assert [target for group in targets for target in group["targets"]] == [
        f"{name}:{config.web.port}" for name in workers
    ]
    for name, group in zip(workers, targets, strict=True):
        # Where a browser on this machine finds the worker: the dashboards link there.
        assert COMPOSE.services[name]["ports"] == [f"{group['labels']['instance']}:{config.web.port}"]
        assert f"127.0.0.1:{config.web.port}/readyz" in COMPOSE.services[name]["healthcheck"]["test"][-1]
    (page,) = yaml.safe_load(COMPOSE.on_host("prometheus", "/etc/prometheus/targets/page.yml").read_text())
    assert page["targets"] == [f"page:{config.serve.port}"]
    assert COMPOSE.services["page"]["ports"] == [f"{page['labels']['instance']}:{config.serve.port}"]
    assert f"127.0.0.1:{config.serve.port}/livez" in COMPOSE.services["page"]["healthcheck"]["test"][-1]
    streams = [word.split("=", 1)[1] for word in COMPOSE.services["producer"]["command"] if word.startswith("--stream")]
    parsed = [DriftStream.parse(stream, first=2, every=1) for stream in streams]
    assert [stream.model_id for stream in parsed] == list(config.models)
    assert [len(stream.rules) for stream in parsed] == [2, 1], "one that drifts, and one that does not"


@pytest.mark.parametrize("name", OURS)
def test_the_commands_of_our_services_are_commands(name: str) -> None:
    words = COMPOSE.services[name]["command"]
    context = cli.make_context("attributary", list(words), resilient_parsing=True)
    path, command, rest = [], cli, list(words)
    while rest and hasattr(command, "commands"):
        path.append(rest[0])
        command = command.commands[rest.pop(0)]
    options = {option for parameter in command.params for option in parameter.opts}
    assert {word.split("=")[0] for word in rest} <= options
    assert context.command is cli


def test_the_image_is_of_pinned_stages_and_ends_without_root() -> None:
    stages = re.findall(r"^FROM (\S+)", DOCKERFILE, re.MULTILINE)
    assert len(stages) == 2
    for image in stages:
        assert re.fullmatch(r"python:3\.\d+\.\d+-(slim-)?\w+", image), image
    last = DOCKERFILE[DOCKERFILE.rindex("\nFROM ") :]
    (user,) = re.findall(r"^USER (\d+):(\d+)$", last, re.MULTILINE)
    assert user == ("10001", "10001")
    assert all(COMPOSE.services[name]["user"] == ":".join(user) for name in OURS)
    assert "\nRUN " not in last, "nothing is made in the image that runs"
    assert 'CMD ["python"' in last.split("HEALTHCHECK")[1]
    assert json.loads(re.findall(r"^ENTRYPOINT (.*)$", last, re.MULTILINE)[0]) == ["attributary"]


def test_the_image_is_built_by_the_script_that_is_checked_without_docker() -> None:
    assert "RUN deploy/image/build.sh . /opt/attributary\n" in DOCKERFILE
    check = (ROOT / "deploy/image/check.sh").read_text()
    assert 'deploy/image/build.sh . "$work/attributary"' in check
    assert "deploy/image/Dockerfile" in check, "it takes the files to copy from there"
    for script in ("build.sh", "check.sh"):
        assert os.access(ROOT / "deploy/image" / script, os.X_OK)


def test_the_core_is_compiled_where_the_image_is_built() -> None:
    build = (ROOT / "deploy/image/build.sh").read_text()
    assert f"$1[{','.join(EXTRAS)}]" in build
    assert "is_compiled" in build
    assert "hatch_build.py" in {path for line in copy_lines() for path in line}
    assert not {"-slim", "-alpine"} & set(re.findall(r"-[a-z]+", DOCKERFILE.split("AS build")[0])), "it has a compiler"


def test_everything_that_is_copied_is_there_and_not_ignored() -> None:
    rules = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    copied = [path for line in copy_lines() for path in line[:-1]]
    assert len(copied) >= 6
    for path in copied:
        assert (ROOT / path).exists(), path
        ignored = False
        for rule in rules:  # the last rule that fits wins; a rule for a folder fits what is in it
            pattern = rule.removeprefix("!").rstrip("/")
            parts = Path(path).parts
            if any(fnmatch.fnmatch("/".join(parts[: n + 1]), pattern) for n in range(len(parts))):
                ignored = not rule.startswith("!")
        assert not ignored, path


def copy_lines() -> list[list[str]]:
    """Sources and target of each COPY from the build context."""
    return [line.split() for line in re.findall(r"^COPY (?!--from)(.*)$", DOCKERFILE, re.MULTILINE)]


def test_what_the_package_needs_is_pinned_in_the_image() -> None:
    import tomllib

    from packaging.requirements import Requirement
    from packaging.utils import canonicalize_name

    lines = (ROOT / "deploy/image/constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if not line.startswith("#"))
    pinned = {canonicalize_name(name): version for name, version in pins.items()}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(one for extra in EXTRAS for one in project["optional-dependencies"][extra])]
    for requirement in map(Requirement, wanted):
        name = canonicalize_name(requirement.name)
        if name == "attributary":
            assert requirement.extras <= set(EXTRAS), "another extra, whose packages are wanted too"
            continue
        assert name in pinned, name
        assert requirement.specifier.contains(pinned[name]), requirement


def test_kafka_is_the_version_that_the_tests_run_on() -> None:
    pom = (ROOT / "deploy/kafka/pom.xml").read_text()
    assert f"<kafka.version>{read_env()['KAFKA_VERSION']}</kafka.version>" in pom


def test_the_image_s_version_is_the_package_s() -> None:
    assert f'version = "{read_env()["ATTRIBUTARY_VERSION"]}"' in (ROOT / "pyproject.toml").read_text()


@pytest.mark.prometheus
def test_prometheus_and_alertmanager_take_their_configurations() -> None:
    for tool, command, service in (("promtool", "config", "prometheus"), ("amtool", None, "alertmanager")):
        path = COMPOSE.on_host(service, COMPOSE.option(service, "--config.file"))
        arguments: list[Any] = ["check", command, path] if command else ["check-config", path]
        done = subprocess.run([program(tool), *arguments], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
