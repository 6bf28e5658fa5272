"""Open Inference Protocol in Protobuf, as gRPC and Seldon Core 2 write it.

The messages are described here, field by field, and not by generated code: it would be tied to a release of protobuf.
Fields that nothing is read from are left out, as Protobuf allows.
"""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from attributary_topics import InvalidRecordError

from .inference_json import REQUEST, Message, Tensor, from_raw, names_of, rows_of, text, without_nan

_PACKAGE = "inference"

_ONE, _MANY = 1, 3
_KINDS = {
    "double": 1,
    "float": 2,
    "int64": 3,
    "uint64": 4,
    "bool": 8,
    "string": 9,
    "bytes": 12,
    "uint32": 13,
    "int32": 5,
}
_MESSAGE = 11

_MESSAGES: dict[str, tuple[tuple[str, int, int, str], ...]] = {
    "InferParameter": (
        ("bool_param", 1, _ONE, "bool"),
        ("int64_param", 2, _ONE, "int64"),
        ("string_param", 3, _ONE, "string"),
        ("double_param", 4, _ONE, "double"),
        ("uint64_param", 5, _ONE, "uint64"),
    ),
    # A map, as it is written.
    "Parameter": (("key", 1, _ONE, "string"), ("value", 2, _ONE, "InferParameter")),
    "Contents": (
        ("bool_contents", 1, _MANY, "bool"),
        ("int_contents", 2, _MANY, "int32"),
        ("int64_contents", 3, _MANY, "int64"),
        ("uint_contents", 4, _MANY, "uint32"),
        ("uint64_contents", 5, _MANY, "uint64"),
        ("fp32_contents", 6, _MANY, "float"),
        ("fp64_contents", 7, _MANY, "double"),
        ("bytes_contents", 8, _MANY, "bytes"),
    ),
    "InferTensor": (
        ("name", 1, _ONE, "string"),
        ("datatype", 2, _ONE, "string"),
        ("shape", 3, _MANY, "int64"),
        ("parameters", 4, _MANY, "Parameter"),
        ("contents", 5, _ONE, "Contents"),
    ),
    "ModelInferRequest": (
        ("model_name", 1, _ONE, "string"),
        ("model_version", 2, _ONE, "string"),
        ("id", 3, _ONE, "string"),
        ("parameters", 4, _MANY, "Parameter"),
        ("tensors", 5, _MANY, "InferTensor"),
        ("raw_contents", 7, _MANY, "bytes"),
    ),
    "ModelInferResponse": (
        ("model_name", 1, _ONE, "string"),
        ("model_version", 2, _ONE, "string"),
        ("id", 3, _ONE, "string"),
        ("parameters", 4, _MANY, "Parameter"),
        ("tensors", 5, _MANY, "InferTensor"),
        ("raw_contents", 6, _MANY, "bytes"),
    ),
}
"""Each message's fields: name, number, whether there may be many, and type."""

_CONTENTS = {
    "BOOL": "bool_contents",
    **dict.fromkeys(("INT8", "INT16", "INT32"), "int_contents"),
    "INT64": "int64_contents",
    **dict.fromkeys(("UINT8", "UINT16", "UINT32"), "uint_contents"),
    "UINT64": "uint64_contents",
    "FP32": "fp32_contents",
    "FP64": "fp64_contents",
    "BYTES": "bytes_contents",
}
"""Where the values of each data type are; those of FP16 and BF16 are raw alone."""


class _Types(NamedTuple):
    request: Any
    response: Any
    error: type[Exception]


@cache
def _types() -> _Types:
    from google.protobuf import descriptor_pb2, descriptor_pool, message, message_factory

    file = descriptor_pb2.FileDescriptorProto(name="attributary_inference.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _MESSAGES.items():
        made = file.message_type.add(name=name)
        is_choice = name == "InferParameter"
        if is_choice:
            made.oneof_decl.add(name="parameter_choice")
        for field, number, label, kind in fields:
            one = made.field.add(name=field, number=number, label=label, type=_KINDS.get(kind, _MESSAGE))
            if kind in _MESSAGES:
                one.type_name = f".{_PACKAGE}.{kind}"
            if is_choice:
                one.oneof_index = 0
    pool = descriptor_pool.DescriptorPool()  # its own: others may know these names as well
    pool.AddSerializedFile(file.SerializeToString())
    request, response = (
        message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in ("ModelInferRequest", "ModelInferResponse")
    )
    return _Types(request, response, message.DecodeError)


def read_protobuf(data: bytes, kind: str) -> Message:
    """Return the message in Protobuf.

    Parameters
    ----------
    kind
        `request` or `response`: the bytes do not say it.

    Raises
    ------
    InvalidRecordError
        It is no message of the protocol, or a tensor is not what it says.
    """
    types = _types()
    part = "inputs" if kind == REQUEST else "outputs"
    try:
        message = (types.request if kind == REQUEST else types.response).FromString(data)
    except (types.error, UnicodeDecodeError):
        raise InvalidRecordError("not_inference", "value", f"a {kind} in Protobuf or JSON", data) from None
    raw = list(message.raw_contents)
    if raw and len(raw) != len(message.tensors):
        expected = f"raw contents of {len(message.tensors)} tensors"
        raise InvalidRecordError("wrong_tensor", part, expected, len(raw))
    tensors = []
    for i, tensor in enumerate(message.tensors):
        where = f"{part}.{tensor.name}"
        parameters = _parameters(tensor)
        values = from_raw(tensor.datatype, raw[i], where) if raw else _values(tensor, where)
        names = names_of(parameters.get("names"), where)
        tensors.append(Tensor(tensor.name, list(tensor.shape), values, names))
    said = (message.id or None, message.model_name or None, message.model_version or None)
    return Message(kind, rows_of(tensors, part), *said, _parameters(message))


def _values(tensor: Any, where: str) -> list[Any]:
    name = _CONTENTS.get(tensor.datatype)
    if name is None:
        expected = f"raw contents, or one of {', '.join(_CONTENTS)}"
        raise InvalidRecordError("wrong_tensor", where, expected, tensor.datatype)
    values = list(getattr(tensor.contents, name))
    if tensor.datatype == "BYTES":
        return [text(value) for value in values]
    return without_nan(values)


def _parameters(message: Any) -> dict[str, Any]:
    found = {}
    for one in message.parameters:
        if (choice := one.value.WhichOneof("parameter_choice")) is not None:
            found[one.key] = getattr(one.value, choice)
    return found
