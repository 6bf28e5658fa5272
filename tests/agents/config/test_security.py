"""kafka.security: what is accepted, what each fault says, and that no secret is in anything that is said."""

from __future__ import annotations

import json
import re
import traceback
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml
from click.testing import CliRunner
from pydantic import ValidationError
from support.secure_kafka import CANARY

from attributary_agents.cli.main import cli
from attributary_agents.config.reading import load_config, parse_config
from attributary_agents.config.secrets import MASK, read_secret
from attributary_agents.config.settings import Config
from attributary_agents.errors import ConfigError
from attributary_agents.kafka.clients import client_options

ROOT = Path(__file__).resolve().parents[3]
MODELS = {"m": {"model": {"class": "river.naive_bayes.GaussianNB"}}}
SASL = {"protocol": "SASL_SSL", "mechanism": "PLAIN", "username": "u", "password": CANARY}


def with_security(security: Any, **kafka: Any) -> dict[str, Any]:
    return {"models": MODELS, "kafka": {**kafka, "security": security}}


def refusal(data: dict[str, Any]) -> str:
    with pytest.raises(ConfigError) as caught:
        parse_config(data)
    said = "".join(traceback.format_exception(caught.value))
    assert CANARY not in said
    assert "\n" not in str(caught.value)
    return str(caught.value)


def options(security: dict[str, Any]) -> dict[str, Any]:
    return client_options(parse_config(with_security(security)).kafka)


def test_without_the_section_nothing_is_secured() -> None:
    kafka = parse_config({"models": MODELS, "kafka": {"brokers": ["one:1"]}}).kafka
    assert client_options(kafka) == {"bootstrap_servers": ["one:1"], "security_protocol": "PLAINTEXT"}


def test_users_with_a_password(tmp_path: Path) -> None:
    found = options(SASL)
    context = found.pop("ssl_context")
    assert context.check_hostname
    assert context.verify_mode.name == "CERT_REQUIRED"
    assert found == {
        "bootstrap_servers": ["localhost:9092"],
        "security_protocol": "SASL_SSL",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "u",
        "sasl_plain_password": CANARY,
    }
    plain = options({**SASL, "protocol": "SASL_PLAINTEXT"})
    assert "ssl_context" not in plain
    assert plain["sasl_plain_password"] == CANARY


def test_a_password_in_a_file_is_read_when_it_is_needed(tmp_path: Path) -> None:
    file = tmp_path / "password"
    given = {**SASL, "password": None, "password_file": str(file)}
    config = parse_config(with_security(given))  # `replay` and `config show` need none
    with pytest.raises(ConfigError, match=rf"kafka\.security\.password_file: cannot read {file}: No such file"):
        client_options(config.kafka)
    for content, secret in [("one\n", "one"), ("two\r\n", "two"), (" three ", " three ")]:
        file.write_bytes(content.encode())
        assert client_options(config.kafka)["sasl_plain_password"] == secret


@pytest.mark.parametrize(("content", "said"), [(b"", "is empty"), (b"\n", "is empty"), (b"\xff", "is not text")])
def test_a_file_without_a_secret_is_named(content: bytes, said: str, tmp_path: Path) -> None:
    file = tmp_path / "password"
    file.write_bytes(content)
    with pytest.raises(ConfigError, match=rf"state\.key_file: {file} {said}"):
        read_secret("state.key", None, file)
    assert read_secret("state.key", None, None) is None


def test_the_password_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__SECURITY__PASSWORD", "12345")  # no JSON number
    monkeypatch.setenv("ATTRIBUTARY_KAFKA__SECURITY__USERNAME", "from-environment")
    found = options(SASL)
    assert (found["sasl_plain_username"], found["sasl_plain_password"]) == ("from-environment", "12345")


@pytest.mark.parametrize(
    ("security", "said"),
    [
        ({**SASL, "username": None}, "kafka.security: protocol SASL_SSL needs username"),
        ({**SASL, "mechanism": None}, "protocol SASL_SSL needs mechanism"),
        ({**SASL, "password": None}, "protocol SASL_SSL needs password (or password_file)"),
        ({"protocol": "SASL_PLAINTEXT"}, "needs mechanism, username, password (or password_file)"),
        ({**SASL, "password_file": "p"}, "password and password_file are both given: give one of them"),
        (
            {"protocol": "SSL", "cert_file": "c", "key_password": CANARY, "key_password_file": "p"},
            "key_password and key_password_file are both given",
        ),
        ({"protocol": "SSL", "key_file": "k"}, "key_file without cert_file: give the certificate, too"),
        (
            {**SASL, "protocol": "SSL"},
            "protocol SSL does not use mechanism, username, password: set protocol to SASL_SSL, or leave them out",
        ),
        ({"password": CANARY}, "protocol PLAINTEXT does not use password: set protocol to SASL_PLAINTEXT, or leave"),
        ({"ca_file": "c"}, "protocol PLAINTEXT does not use ca_file: set protocol to SSL, or leave"),
        ({**SASL, "protocol": "SASL_PLAINTEXT", "ca_file": "c"}, "does not use ca_file: set protocol to SASL_SSL"),
        ({"protocol": "TLS"}, "kafka.security.protocol should be 'PLAINTEXT', 'SSL', 'SASL_PLAINTEXT' or 'SASL"),
        ({**SASL, "mechanism": "GSSAPI"}, "kafka.security.mechanism should be 'PLAIN', 'SCRAM-SHA-256' or 'SC"),
        ({**SASL, "username": ""}, "kafka.security.username: string should have at least 1 character"),
        ({**SASL, "password": ""}, "kafka.security.password: it is empty"),
        ({**SASL, "password": MASK}, "is what `attributary config show` prints in place of a secret"),
        # What a slip of the pen makes of a password.
        ({**SASL, "password": 4711}, "kafka.security.password should be text, got another value (not shown)"),
        ({**SASL, "password": [CANARY]}, "kafka.security.password should be text, got another value (not sh"),
        ({**SASL, "password": {CANARY: 1}}, "kafka.security.password should be text"),
        ({**SASL, "pasword": CANARY}, "unknown key 'kafka.security.pasword'"),
        ({**SASL, f"password:{CANARY}": None}, "unknown key in kafka.security (not shown)"),
        (f"password:{CANARY}", "kafka.security should be a mapping"),
        ([CANARY], "kafka.security should be a mapping"),
    ],
)
def test_a_fault_is_named_and_no_secret_with_it(security: Any, said: str) -> None:
    message = refusal(with_security(security))
    assert said in message
    assert "4711" not in message


def test_a_section_that_is_something_else_is_not_shown() -> None:
    assert "got another value (not shown)" in refusal({"models": MODELS, "kafka": f"security: password: {CANARY}"})
    assert "unknown key 'kafka.password'" in refusal({"models": MODELS, "kafka": {"password": CANARY}})
    assert "kafka.brokers" in refusal({"models": MODELS, "kafka": {"brokers": "localhost:1"}})
    assert "got 'localhost:1'" in refusal({"models": MODELS, "kafka": {"brokers": "localhost:1"}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("ATTRIBUTARY_KAFKA__SECURITY", CANARY),
        ("ATTRIBUTARY_KAFKA", f'{{"security": {{"password": "{CANARY}"}}'),
        ("ATTRIBUTARY_KAFKA__SECURITY__PASSWRD", CANARY),
        ("ATTRIBUTARY_SECURITY__PASSWORD", CANARY),
        ("ATTRIBUTARY_KAFKA__PASSWORD", CANARY),
        ("ATTRIBUTARY_KAFKA__SECURITY__PASSWORD", CANARY),  # with PLAINTEXT
    ],
)
def test_a_wrong_variable_does_not_show_the_secret(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    assert re.search("ATTRIBUTARY_KAFKA|kafka|ATTRIBUTARY_SECURITY__PASSWORD", refusal({"models": MODELS}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'password: "{CANARY}', "line 5"),
        (f"password: *{CANARY}", "found undefined alias in line 4, column 15"),
        (f"password: !{CANARY}", "could not determine a constructor for the tag in line 4, column 15"),
        (f"password: !a!{CANARY}", "line 4, column 15"),
        (f"password: a: {CANARY}", "line 4, column 16"),
        (f"password: @{CANARY}", "line 4, column 15"),
        (f"password: [{CANARY}", "line 5"),
        (f"password: {CANARY}\n    password: {CANARY}", "key password is given twice in line 4, column 5"),
    ],
)
def test_a_file_that_is_no_yaml_is_not_quoted(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    path.write_text(f"models: {{}}\nkafka:\n  security:\n    {text}\n")
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    assert f"{path} is not YAML: " in str(caught.value)
    assert said in str(caught.value)
    assert CANARY not in "".join(traceback.format_exception(caught.value))


def test_the_configuration_in_force_shows_no_secret(tmp_path: Path) -> None:
    path = tmp_path / "attributary.yaml"
    raw = with_security({**SASL, "cert_file": "c", "key_password": f"{CANARY}-key"})
    path.write_text(yaml.safe_dump(raw))
    config = load_config(path)
    assert CANARY not in repr(config) + str(config) + str(config.kafka) + config.model_dump_json()
    for arguments in ([], ["--json"]):
        done = CliRunner().invoke(cli, ["config", "show", "-c", str(path), *arguments])
        assert done.exit_code == 0
        assert CANARY not in done.output
        shown = json.loads(done.output) if arguments else yaml.safe_load(done.output)
        assert shown["kafka"]["security"]["password"] == shown["kafka"]["security"]["key_password"] == MASK
        assert "prints in place of a secret" in refusal(shown)
    with pytest.raises(ValidationError) as caught:
        Config(**with_security({**SASL, "password": [CANARY]}))
    assert CANARY not in str(caught.value)


def test_the_examples_of_the_page_are_accepted() -> None:
    page = (ROOT / "docs/security.md").read_text()
    examples = [yaml.safe_load(text) for text in re.findall("(?s)```yaml\n(.*?)```", page)]
    sections = [parse_config({"models": MODELS, **example}).kafka.security for example in examples]
    assert [section.protocol for section in sections] == ["SASL_SSL", "SSL"]


class TestFiles:
    """Certificates and keys, read before a client connects."""

    @pytest.fixture
    def files(self, tmp_path: Path) -> Path:
        authority = trustme.CA()
        authority.cert_pem.write_to_path(tmp_path / "ca.pem")
        for name in ("ours", "other"):
            issued = authority.issue_cert(f"{name}.test")
            issued.private_key_and_cert_chain_pem.write_to_path(tmp_path / f"{name}.pem")
            issued.private_key_pem.write_to_path(tmp_path / f"{name}.key")
        (tmp_path / "words").write_text("no certificate")
        return tmp_path

    def test_certificate_and_key_in_one_file_or_two(self, files: Path) -> None:
        for key in ({}, {"key_file": str(files / "ours.key")}):
            given = {"protocol": "SSL", "ca_file": str(files / "ca.pem"), "cert_file": str(files / "ours.pem"), **key}
            assert len(options(given)["ssl_context"].get_ca_certs()) == 1

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            ({"ca_file": "absent"}, r"kafka\.security\.ca_file: cannot read .*absent: No such file"),
            ({"cert_file": "absent"}, r"kafka\.security\.cert_file: cannot read .*absent: No such file"),
            (
                {"cert_file": "ours.pem", "key_file": "absent"},
                r"kafka\.security\.key_file: cannot read .*absent: No suc",
            ),
            ({"ca_file": "words"}, r"kafka\.security\.ca_file: .*words has no certificate in PEM"),
            ({"cert_file": "words"}, r"kafka\.security\.cert_file: .*words must hold a certificate and it its private"),
            (
                {"cert_file": "ours.pem", "key_file": "other.key"},
                r"other\.key is not the key of the certificate in .*ours",
            ),
            ({"cert_file": "ours.pem", "key_file": "words"}, r"words its private key, both in PEM"),
        ],
    )
    def test_one_that_is_wrong_is_named(self, given: dict[str, str], said: str, files: Path) -> None:
        section = {"protocol": "SSL", **{name: str(files / file) for name, file in given.items()}}
        with pytest.raises(ConfigError, match=said):
            options(section)
