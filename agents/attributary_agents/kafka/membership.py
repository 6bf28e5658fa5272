"""Membership in the consumer group under a name, `kafka.instance_id`.

A member with a name takes its partitions again as soon as it is back, since the group need not wait for the session of
the killed process.
"""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Any

from ..config.settings import Config, KafkaConfig
from ..errors import PreflightError
from .admin import with_admin


def client_id(pid: int | None = None, host: str = "") -> str:
    """Return the client id of a named worker: its host and process.

    By it the next worker knows whether it comes in this one's place.
    """
    pid = os.getpid() if pid is None else pid
    start = _start(pid)
    return f"attributary-{_host(host)}-{pid}{f'.{start}' if start else ''}"


def _host(name: str = "") -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name or socket.gethostname())


def _start(pid: int) -> str:
    """Return a process's start in the kernel's ticks; empty but on Linux."""
    try:
        # The second field is the name of the program, which may hold blanks and brackets.
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def fenced(kafka: KafkaConfig) -> str:
    """Return the message of a worker whose name another worker has taken."""
    return (
        f"another worker has joined the group {kafka.group} as kafka.instance_id {kafka.instance_id!r}, and has this "
        "one's partitions: this one ends, nothing is lost. Give each worker a name of its own: in Kubernetes, that of "
        "a StatefulSet's pod"
    )


def check_name(config: Config) -> None:
    """Check that no worker elsewhere is a member under our name.

    Otherwise PreflightError is raised: we would take its partitions. One of the same host is one that we come in place
    of, unless its process is still there.
    """
    kafka = config.kafka
    name = kafka.instance_id
    if name is None:
        return

    async def work(admin: Any) -> list[tuple[str, str, str]]:
        answers = await admin.describe_consumer_groups([kafka.group])
        return [member[:3] for answer in answers for group in answer.groups for member in group[5]]

    for member_id, its_client, address in with_admin(kafka, work):
        # Kafka makes the ids of members with names of the name and a UUID.
        if member_id[:-36] == f"{name}-" and _is_another(its_client):
            raise PreflightError(
                f"kafka.instance_id: {name!r} is a member of the group {kafka.group} already: {its_client} at "
                f"{address.lstrip('/')}. Give each worker a name of its own (in Kubernetes, that of a StatefulSet's "
                f"pod), and keep name and host name together. Where that worker has ended, the name is free "
                f"{kafka.session_timeout_s:g} s later (kafka.session_timeout_s)"
            )


def _is_another(its_client: str) -> bool:
    """Return whether a client is another worker that may still run."""
    match = re.fullmatch(r"attributary-(?P<host>.+)-(?P<pid>\d+)(?:\.(?P<start>\d+))?", its_client)
    if match is None:
        return False  # no worker of this release: nothing is known of it
    pid, start = int(match["pid"]), match["start"]
    if match["host"] != _host():
        return True
    if pid == os.getpid():  # a container's first process, started again
        return False
    if start and (now := _start(pid)) and now != start:
        return False  # its number has been given to another process
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
