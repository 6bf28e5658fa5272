"""Apache Kafka with SASL, TLS, users and an authorizer, on listeners of their own."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import trustme
from cryptography.hazmat.primitives import serialization as pem

from attributary_agents.demo.brokers import KafkaBroker
from attributary_agents.demo.local_broker import HOST, ask, free_port

CANARY = "canary4Kq9"
"""Part of every password: it must not be in anything that is printed."""
KEY_PASSWORD = f"{CANARY}-key"
USERS = ("creator", "worker", "producer", "deployer", "reader", "page", "nobody")
_PAGE = Path(__file__).resolve().parents[1] / "docs" / "security.md"
SCRAM = ("SCRAM-SHA-256", "SCRAM-SHA-512")


def password(user: str) -> str:
    """Return the password of a user of the test broker; it carries the canary."""
    return f"{CANARY}-{user}"


class Acl(NamedTuple):
    """Operations that a user may do with one resource, by Kafka's names."""

    user: str
    resource: str
    name: str
    operations: tuple[str, ...]
    is_prefix: bool = False
    """Whether the name is the beginning of those that are meant."""


def documented_acls(name: str) -> list[Acl]:
    """Return the table of docs/security.md, for a topic prefix and group of this name."""
    row = r"(?m)^\| (\w+) \| (topic|group|cluster|transactional id) \| `([^`]+)`( \(prefix\))? \| ([\w, ]+) \|$"
    acls = [
        Acl(user, what, which.replace("attributary", name), tuple(how.split(", ")), bool(prefix))
        for user, what, which, prefix, how in re.findall(row, _PAGE.read_text())
    ]
    assert {acl.user for acl in acls} == {"worker", "producer", "deployer", "reader", "page", "creator"}
    return acls


class SecureKafka(KafkaBroker):
    """One broker that listens in five ways; `at` says where.

    Without an ACL the users may do nothing. The listener PLAINTEXT is for the broker itself and for tests, as the
    super user ANONYMOUS.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(folder / "kafka")
        self.ports = {"SASL_SSL": free_port(), "SSL": free_port(), "SASL_PLAINTEXT": free_port()}
        self.files = folder / "files"
        self.files.mkdir()
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.files / "ca.pem")
        trustme.CA().cert_pem.write_to_path(self.files / "other-ca.pem")
        self._write_certificate("broker", authority.issue_cert(HOST), None)
        for user in USERS:
            issued = authority.issue_cert(f"{user}.test", common_name=user)
            self._write_certificate(user, issued, KEY_PASSWORD)
        self._write_certificate("stranger", trustme.CA().issue_cert("stranger.test", common_name="stranger"), None)
        for user in USERS:
            (self.files / f"{user}.password").write_text(password(user) + "\n")

    def at(self, protocol: str, host: str = HOST) -> str:
        """Where a listener is: host:port."""
        return f"{host}:{self._port if protocol == 'PLAINTEXT' else self.ports[protocol]}"

    def sasl(self, user: str = "worker", mechanism: str = "SCRAM-SHA-512") -> dict[str, Any]:
        """A section kafka.security that works on the listener SASL_SSL."""
        return {
            "protocol": "SASL_SSL",
            "ca_file": str(self.files / "ca.pem"),
            "mechanism": mechanism,
            "username": user,
            "password_file": str(self.files / f"{user}.password"),
        }

    def mutual(self, user: str = "worker") -> dict[str, Any]:
        """A section kafka.security that works on the listener SSL."""
        return {
            "protocol": "SSL",
            "ca_file": str(self.files / "ca.pem"),
            "cert_file": str(self.files / f"{user}.pem"),
            "key_file": str(self.files / f"{user}.key"),
            "key_password": KEY_PASSWORD,
        }

    def allow(self, acls: Iterable[Acl]) -> None:
        """Add ACLs."""
        wanted = [(acl, operation) for acl in acls for operation in acl.operations]
        body = struct.pack(">i", len(wanted))
        for acl, operation in wanted:
            body += struct.pack(">b", RESOURCES[acl.resource]) + _text(acl.name)
            body += struct.pack(">b", 4 if acl.is_prefix else 3) + _text(f"User:{acl.user}") + _text("*")
            body += struct.pack(">bb", OPERATIONS[operation], 3)
        answer = ask(self._port, 30, 1, body)  # CreateAcls v1
        assert answer[8:] == bytes(4 * len(wanted)), answer  # no error, an empty message

    def _write_certificate(self, name: str, issued: trustme.LeafCert, secret: str | None) -> None:
        key = pem.load_pem_private_key(issued.private_key_pem.bytes(), None)
        how = pem.BestAvailableEncryption(secret.encode()) if secret else pem.NoEncryption()
        private = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, how)
        chain = b"".join(part.bytes() for part in issued.cert_chain_pems)
        (self.files / f"{name}.key").write_bytes(private)
        (self.files / f"{name}.pem").write_bytes(chain)
        (self.files / f"{name}-both.pem").write_bytes(private + chain)

    def _format_options(self) -> list[str]:
        return [f"--add-scram={name}=[name={user},password={password(user)}]" for name in SCRAM for user in USERS]

    def _properties(self, data: Path) -> str:
        kafka = super()._properties(data)
        ours = ",".join(f"{name}://{HOST}:{port}" for name, port in self.ports.items())
        kafka = re.sub(r"(?m)^((?:advertised\.)?listeners=.*)$", rf"\1,{ours}", kafka)
        users = " ".join(f'user_{user}="{password(user)}"' for user in USERS)
        modules = "org.apache.kafka.common.security"
        jaas = {
            "plain": f"{modules}.plain.PlainLoginModule required {users};",
            **{name.lower(): f"{modules}.scram.ScramLoginModule required;" for name in SCRAM},
        }
        logins = "\n".join(
            f"listener.name.{listener}.{mechanism}.sasl.jaas.config={module}"
            for listener in ("sasl_ssl", "sasl_plaintext")
            for mechanism, module in jaas.items()
        )
        return f"""\
{kafka}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT
ssl.keystore.type=PEM
ssl.keystore.location={self.files / "broker-both.pem"}
ssl.truststore.type=PEM
ssl.truststore.location={self.files / "ca.pem"}
listener.name.ssl.ssl.client.auth=required
ssl.principal.mapping.rules=RULE:^.*CN=([^,]+).*$/$1/
sasl.enabled.mechanisms=PLAIN,{",".join(SCRAM)}
listener.name.sasl_plaintext.sasl.enabled.mechanisms=SCRAM-SHA-256
{logins}
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""


RESOURCES = {"topic": 2, "group": 3, "cluster": 4, "transactional id": 5}
"""Name of a kind of resource to Kafka's number."""

OPERATIONS = {"Read": 3, "Write": 4, "Create": 5, "Describe": 8, "DescribeConfigs": 10}
"""Kafka's name of an operation to its number."""


def _text(value: str) -> bytes:
    return struct.pack(">h", len(value)) + value.encode()
