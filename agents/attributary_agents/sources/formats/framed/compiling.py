"""Compilation of a registry's Protobuf schemas in a separate process."""

from __future__ import annotations

import asyncio
import contextlib
import re
import sys
import tempfile
from pathlib import Path, PurePosixPath

from ....errors import SchemaUnavailableError
from .framing import wrong_schema
from .registry import RegisteredSchema

WITHIN_S = 60.0
_MAIN = "attributary_main.proto"
_OUT = "attributary_descriptors"

_OPTIONS = "".join(
    f"extend google.protobuf.{of}Options {{ Meta {name}_meta = 1088; }}\n"
    for of, name in {
        "File": "file",
        "Message": "message",
        "Field": "field",
        "Enum": "enum",
        "EnumValue": "enum_value",
    }.items()
)
_WARNING = re.compile(r"^(WARNING: |[IW]\d{4} |.*\bwarning: ).*")
"""Lines of the compiler that say nothing of why it ends."""

KNOWN = {
    "confluent/meta.proto": 'syntax = "proto3"; package confluent; import "google/protobuf/descriptor.proto";\n'
    "message Meta { string doc = 1; map<string, string> params = 2; repeated string tags = 3; }\n" + _OPTIONS,
    "confluent/type/decimal.proto": 'syntax = "proto3"; package confluent.type;\n'
    "message Decimal { bytes value = 1; uint32 precision = 2; int32 scale = 3; }\n",
}
"""Files that Kafka Connect's schemas import and that no registry has: every client brings them along."""


async def compile_schema(schema: RegisteredSchema) -> bytes:
    """Return the FileDescriptorSet of a schema and its imports, itself last.

    Raises
    ------
    InvalidRecordError
        `wrong_schema`: the compiler refuses it; the message has its words.
    SchemaUnavailableError
        The compiler has not finished in time.
    """
    files = {**KNOWN, **schema.references, _MAIN: schema.text}
    for name in files:
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or path.name in ("", _OUT) or "\0" in name:
            raise wrong_schema(schema, f"refers to {name!r}, which is no name of a file")
    with tempfile.TemporaryDirectory(prefix="attributary-proto-") as made:
        folder = Path(made)
        await asyncio.to_thread(_write, folder, files)
        status, said = await _protoc(folder, schema)
        if status != 0:
            why = next(filter(None, (_WARNING.sub("", line).strip() for line in said.splitlines())), f"status {status}")
            raise wrong_schema(
                schema, f"cannot be compiled: {why.replace(f'{folder}/', '').replace(f'{_MAIN}:', 'line ')}"
            )
        return await asyncio.to_thread((folder / _OUT).read_bytes)


def _write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


async def _protoc(folder: Path, schema: RegisteredSchema) -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        # Not in the folder: it holds files whose names and contents come from the registry.
        *(sys.executable, "-P", "-m", "grpc_tools.protoc", f"-I{folder}"),
        *(f"--descriptor_set_out={folder / _OUT}", "--include_imports", str(folder / _MAIN)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(WITHIN_S):
            _, said = await process.communicate()
    except TimeoutError:
        message = f"schema id {schema.id}: it was not compiled within {WITHIN_S:g} s"
        raise SchemaUnavailableError(message) from None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
    return process.returncode or 0, said.decode("utf-8", "replace")
