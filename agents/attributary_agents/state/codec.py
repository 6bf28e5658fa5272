"""Conversion of a model's state to bytes for the state table, and back.

The format is a name of 4 bytes, a line of the versions of the packages that wrote it, and a zstd frame. The frame holds
a pickle of plain data, and no other is read (`PLAIN`); the models in it are slim pickles of their own. No frame is
unpacked beyond 64 times its length, nor beyond 32 MiB where it is short: what can be packed more tightly is padded. A
state of another format is refused, with what to do.
"""

from __future__ import annotations

import logging
import platform
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import orjson
import zstandard

from attributary_explainers import ExplainerError, dump_model
from attributary_explainers.pickling import loading_with, uncollected

from ..config.models import ModelConfig
from ..errors import DamagedStateError, ForeignTypeError, StateError
from ..models.guards.allowlist import PLAIN, Allowlist
from ..models.model_state import ModelState, new_state
from ..models.versions import Version, allowlist_of, configured_as, configured_version

logger = logging.getLogger(__name__)


_COMPRESSOR = zstandard.ZstdCompressor(level=3, write_checksum=True)
_DECOMPRESSOR = zstandard.ZstdDecompressor()
MOST_TIMES, MOST_OF_SHORT = 64, 2**25
"""How long unpacked data may be: so many times the frame, or so many bytes where that is more."""
_PACKAGES = ("attributary", "river", "numpy", "scikit-learn")


@cache
def versions() -> dict[str, str]:
    """Return the installed versions of the packages that pickles depend on.

    Packages that are not installed are left out.
    """
    found = {"python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


def pack(magic: bytes, data: Any) -> bytes:
    """Return plain data as bytes, in the format that `magic` names."""
    raw = dump_model(data)
    frame = _COMPRESSOR.compress(raw)
    if len(raw) > MOST_OF_SHORT:
        frame = frame.ljust(-(-len(raw) // MOST_TIMES), b"\0")
    return magic + orjson.dumps(versions()) + b"\n" + frame


def unpack(magic: bytes, blob: bytes) -> Any:
    """Unpack data that `pack` packed.

    The message of an error continues a sentence that names the bytes.

    Raises
    ------
    DamagedStateError
        The bytes are torn, or (`ForeignTypeError`) hold something else than plain data.
    StateError
        They are of another format, or hold what can no longer be loaded.
    """
    if blob[:4] != magic:
        raise StateError(f"begins with {blob[:4]!r}, not {magic!r}")
    _, newline, frame = blob[4:].partition(b"\n")
    if not newline:
        raise DamagedStateError("is torn: it has no versions")
    try:
        raw = _decompress(frame)
    except zstandard.ZstdError as error:
        raise DamagedStateError(f"is torn: {error}") from error
    try:
        return PLAIN.load(raw)
    except ForeignTypeError as error:
        raise ForeignTypeError(f"is not read: {error}") from None
    except Exception as error:
        raise StateError(f"cannot be read: {type(error).__name__}: {error}") from error


def _decompress(frame: bytes) -> bytes:
    size, most = zstandard.frame_content_size(frame), max(MOST_OF_SHORT, MOST_TIMES * len(frame))
    if not 0 <= size <= most:
        said = "an unknown number of" if size < 0 else str(size)
        raise DamagedStateError(
            f"would be {said} bytes when it is unpacked, and {most} are the most: no worker writes that"
        )
    return _DECOMPRESSOR.decompress(frame, max_output_size=most)


def packed_with(blob: bytes) -> dict[str, str]:
    """Return the versions that packed the bytes; empty if unknown."""
    try:
        found = orjson.loads(blob[4:].partition(b"\n")[0])
    except orjson.JSONDecodeError:
        return {}
    return found if isinstance(found, dict) else {}


MAGIC = b"ATSB"


def encode_state(state: ModelState) -> bytes:
    """Return the bytes to store."""
    return pack(MAGIC, {**state.snapshot(), "sharded": state.config.sharded})


def decode_state(model_id: str, config: ModelConfig, blob: bytes) -> ModelState:
    """Decode a state, as far as it still fits the configuration.

    An explainer whose parameters have changed starts afresh: old state is never read as new. Where the configuration
    names another model than the state, `configured` of the state differs from the configuration: the state's model is
    to be replaced before the next observation. A model that can no longer be loaded, or cannot be explained as
    configured now, cannot be compared: the configured one starts afresh, with a warning. The position is kept in any
    case, so that nothing is counted twice.

    Raises
    ------
    DamagedStateError
        The bytes are torn, or (`ForeignTypeError`) hold what no model as configured is made of.
    StateError
        They are of another format or model, or cannot be used by this release.
    """
    _check_versions(model_id, config, blob)
    data = _unpack(model_id, blob)
    if data.get("sharded") and not config.sharded:
        raise StateError(
            f"model {model_id}: its state is that of a shard, of a part of the observations: set `sharded: true` "
            f"again, or start the model afresh with `attributary models reset {model_id}`"
        )
    allowlist = allowlist_of(config)
    with uncollected(), loading_with(allowlist.find_class):
        try:
            return _restored(model_id, config, blob, data, allowlist)
        except ForeignTypeError as error:
            raise ForeignTypeError(f"the stored state of {model_id} is not read: {error}") from None


def _restored(
    model_id: str, config: ModelConfig, blob: bytes, data: dict[str, Any], allowlist: Allowlist
) -> ModelState:
    stored = data["current"]
    try:
        version = Version(**{**stored, "model": _load(model_id, stored["model"], blob, allowlist)})
        state = new_state(model_id, config, version)
    except (StateError, ExplainerError) as error:
        if data["configured"] == configured_as(config) or config.registered is not None:
            raise
        logger.warning(
            "model %s: version %s of the configuration starts afresh; the change from version %s cannot be explained, "
            "because that one can no longer be used: %s",
            model_id,
            config.version,
            stored["name"],
            error,
        )
        state = new_state(model_id, config, configured_version(config, deployed=stored["deployed"]))
        state.restore(data, position_only=True)
        return state
    state.restore(data)
    return state


@dataclass(frozen=True)
class Description:
    """Facts about a stored state that are known without loading it.

    The fields are fields of `ModelState`.
    """

    version: str
    n_observations: int
    partition: int
    offset: int
    failed_offsets: dict[int, str]
    deployed: int


def describe(model_id: str, blob: bytes) -> Description:
    """Describe a stored state without loading its model.

    The class of the model may be of a package that is not here.

    Raises
    ------
    DamagedStateError
        The bytes are torn.
    StateError
        They are of another format or model.
    """
    data = _unpack(model_id, blob)
    places = {name: data[name] for name in ("n_observations", "partition", "offset", "failed_offsets")}
    return Description(version=data["current"]["name"], deployed=data["current"]["deployed"], **places)


def check_readable(model_id: str, config: ModelConfig, blob: bytes | None) -> None:
    """Check that this release can read a state, without loading the model.

    Raises
    ------
    DamagedStateError, StateError
        As for `decode_state`.
    """
    if blob is not None:
        _check_versions(model_id, config, blob)
        _unpack(model_id, blob)


def check_release(model_id: str, config: ModelConfig, beginning: bytes | None) -> None:
    """Check that this release reads a state, by the beginning of its bytes.

    The beginning names the packages that wrote the state. None passes.

    Raises
    ------
    StateError
        They are of another format, or of another minor release of River.
    """
    if beginning is None:
        return
    _check_versions(model_id, config, beginning)
    if (found := beginning[: len(MAGIC)]) != MAGIC:
        raise StateError(f"the stored state begins with {found!r}, not {MAGIC!r}. {_advice(model_id, beginning)}")


def _unpack(model_id: str, blob: bytes) -> dict[str, Any]:
    try:
        data = unpack(MAGIC, blob)
    except DamagedStateError as error:
        raise type(error)(f"the stored state of {model_id} {error}") from error
    except StateError as error:
        raise StateError(f"the stored state {error}. {_advice(model_id, blob)}") from error
    if not isinstance(data, dict) or data.get("model_id") != model_id:
        raise StateError(f"the stored state is not of this model. {_advice(model_id, blob)}")
    return data


def _load(model_id: str, data: bytes, blob: bytes, allowlist: Allowlist) -> Any:
    try:
        return allowlist.load(data)
    except ForeignTypeError:
        raise
    except Exception as error:  # foreign bytes, or a class that has moved, can raise anything
        raise StateError(
            f"the stored state cannot be read: {type(error).__name__}: {error}. {_advice(model_id, blob)}"
        ) from error


def _check_versions(model_id: str, config: ModelConfig, blob: bytes) -> None:
    """Refuse a state of another minor release of River.

    It would load, and fail or err later.
    """
    stored, here = packed_with(blob).get("river"), versions()["river"]
    if stored is None or _minor(stored) == _minor(here) or config.any_river:
        return
    raise StateError(
        f"model {model_id}: its state was stored with River {stored}, and here is River {here}. Run with {stored} "
        f"again; or set models.{model_id}.any_river: true after a trial with a copy. {how_to_mend(model_id)}"
    )


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]


def how_to_mend(model_id: str) -> str:
    """Return advice for a state that cannot be read."""
    return (
        f"Start the model afresh with `attributary models reset {model_id}`, or go back to an exported state with "
        f"`attributary models import {model_id} FILE`"
    )


def _advice(model_id: str, blob: bytes) -> str:
    written = ", ".join(f"{name} {version}" for name, version in packed_with(blob).items())
    return (
        f"Model {model_id}: run the release, with the packages, that wrote it{f' ({written})' if written else ''}. "
        f"{how_to_mend(model_id)}"
    )
