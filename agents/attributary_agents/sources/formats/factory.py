"""Creation of formats by name, with a check for their packages."""

from __future__ import annotations

from importlib.util import find_spec

from ...config.settings import KafkaConfig
from ...config.sources import FORMATS
from ...errors import ConfigError
from .base import Format, JsonFormat
from .cloudevents import CloudEventsFormat
from .framing import FramedFormat
from .inference import OpenInferenceFormat
from .registry import Registry

_NEEDED = {
    "avro": {"fastavro": "fastavro", "httpx": "httpx", "stamina": "stamina"},
    "protobuf": {
        "google.protobuf": "protobuf",
        "grpc_tools": "grpcio-tools",
        "httpx": "httpx",
        "stamina": "stamina",
    },
}
"""Of each format the modules that it needs, with the names of their packages; the extra has the name of the format."""


def new_format(name: str, config: KafkaConfig) -> Format:
    """Return a new format, which contacts its services only in `start`.

    Raises
    ------
    ConfigError
        There is none of this name, a package is not installed, or there is no registry for it.
    """
    match name:
        case "json":
            return JsonFormat()
        case "cloudevents":
            return CloudEventsFormat()
        case "open-inference":
            return OpenInferenceFormat()
        case "avro" | "protobuf":
            if config.schema_registry is None:
                raise ConfigError(f"format {name} needs kafka.schema_registry.url")
            require_extra(name)
            return _framed(name, Registry(config.schema_registry))
    raise ConfigError(f"format {name!r}: expected one of {', '.join(FORMATS)}")


def require_extra(name: str) -> None:
    """Raise ConfigError where a package that a format needs is not installed."""
    for module, package in _NEEDED[name].items():
        if not _is_there(module):
            raise ConfigError(f"format {name} needs {package}: pip install 'attributary[{name}]'")


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it
        return False


def _framed(name: str, registry: Registry) -> Format:
    # Here and not above: what they import need not be installed.
    if name == "avro":
        from .avro import make_reader as make_avro_reader

        return FramedFormat("AVRO", registry, make_avro_reader)
    from .protobuf import make_reader as make_protobuf_reader

    return FramedFormat("PROTOBUF", registry, make_protobuf_reader)
