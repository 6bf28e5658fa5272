"""Section for a served model: its address, protocol and patience."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import jmespath
from pydantic import Field, PrivateAttr, field_validator

from .section import Duration, PositiveInt, Section, is_http

DataType = Literal["FP64", "FP32", "INT64", "INT32", "BOOL", "BYTES"]
"""Types of tensors that a row can be written in."""

OF_FEATURES: dict[str, DataType] = {"number": "FP64", "category": "BYTES", "boolean": "BOOL"}
"""Types of declared features to those of tensors."""

PLACEHOLDERS = ("$rows", "$arrays", "$features")
"""What a template puts in place of itself: rows as objects, rows as arrays, the names of the features."""

Predicts = Literal["probabilities", "label", "number"]


class ServedConfig(Section):
    """A model behind an address: asked over HTTP, as Open Inference V2 or in JSON of its own."""

    served: str = Field(
        min_length=1,
        description="Address of the model: http://fraud/v2/models/fraud-a, of which /infer is asked; with "
        "`protocol: json` the address that is asked itself.",
    )
    protocol: Literal["v2", "json"] = Field(
        "v2", description="v2: Open Inference V2, as KServe, Triton, MLServer and others speak it. json: `request`."
    )
    input: str | None = Field(
        None,
        description="v2: name of the one tensor of all features. null: one tensor for each, named as the feature is.",
    )
    output: str | None = Field(None, description="v2: name of the tensor with the predictions. null: the only one.")
    features: dict[str, DataType] | list[str] | None = Field(
        None,
        description="The features in the model's order, or each with the type of its tensor, FP64 in a list. null: "
        "those that the model's `features` declare; of `protocol: json` all that a row has.",
    )
    classes: list[bool | int | float | str] | None = Field(
        None, description="Labels of the probabilities, in their order; of two classes one probability, of the second."
    )
    predicts: Predicts | None = Field(
        None, description="probabilities, label or number. null: probabilities where there are `classes`, else number."
    )
    request: dict[str, Any] | list[Any] | None = Field(
        None,
        description="json: what is sent, in which $rows stands for the rows as objects, $arrays for the rows as arrays "
        "in the order of `features`, and $features for their names. null: {instances: $rows}.",
    )
    answer: str = Field(
        "predictions", description="json: JMESPath to the predictions in the answer, as many as there are rows."
    )
    timeout: Duration = Field(
        2.0, description="Longest wait for a connection, for an answer, and for the rest of it. 500ms, 2s, 1m."
    )
    retries: int = Field(
        3,
        ge=0,
        le=100,
        description="How often a command or a notebook sends a request again that has no answer; a worker does until "
        "it has one.",
    )
    max_rows: PositiveInt = Field(10_000, description="Rows in one request; more are several requests.")
    max_in_flight: PositiveInt = Field(4, description="Requests at a time to this address, of one worker.")
    headers: dict[str, str] = Field(
        default_factory=dict, description="Further headers of each request; what is secret goes to `headers_env`."
    )
    headers_env: dict[str, str] = Field(
        default_factory=dict, description="Header to the variable of the environment that holds its value."
    )
    token_env: str | None = Field(
        None, min_length=1, description="Variable of the environment with a token: `Authorization: Bearer TOKEN`."
    )
    token_file: Path | None = Field(
        None, description="File with that token, read before each request: Kubernetes exchanges them."
    )
    ca_file: Path | None = Field(
        None, description="Certificates, PEM, that its own is signed with; without it those that httpx trusts."
    )
    _declared: dict[str, str] | None = PrivateAttr(None)

    @field_validator("served")
    @classmethod
    def _is_address(cls, value: str) -> str:
        check_address(value)
        return value.rstrip("/")

    @field_validator("answer")
    @classmethod
    def _is_expression(cls, value: str) -> str:
        try:
            jmespath.compile(value)
        except jmespath.exceptions.JMESPathError as error:
            raise ValueError(f"{value!r} is no JMESPath ({str(error).splitlines()[0]})") from None
        return value

    def model_post_init(self, _context: Any) -> None:
        """Refuse settings that exclude each other."""
        self._refuse_of_other_protocol()
        names = list(self.features or ())
        if len(set(names)) < len(names):
            raise ValueError("features: each feature is named once")
        if self.predicts == "probabilities" and not self.classes:
            raise ValueError("`predicts: probabilities` needs `classes`: the labels, in the order of the probabilities")
        if self.classes is not None and (len(self.classes) < 2 or len(set(map(str, self.classes))) < len(self.classes)):
            raise ValueError("classes: expected at least two labels, each once")
        if self.classes and self.predicts not in (None, "probabilities"):
            raise ValueError(f"`classes` are the labels of probabilities, and `predicts` says {self.predicts}")
        if self.token_env is not None and self.token_file is not None:
            raise ValueError("token_env and token_file are both given: give one of them")
        if self.ca_file is not None and not self.served.startswith("https:"):
            raise ValueError("ca_file is used with https only: correct the address, or leave it out")
        for name, value in [*self.headers.items(), *((name, "") for name in self.headers_env)]:
            if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", name):
                raise ValueError(f"headers: {name!r} is no name of a header")
            if not (value.isprintable() and value.isascii()):
                raise ValueError(f"headers: the value of {name} holds more than printable ASCII, as no header may")

    def _refuse_of_other_protocol(self) -> None:
        other = {"json": ("input", "output"), "v2": ("request", "answer")}[self.protocol]
        for name in other:
            if name in self.model_fields_set and getattr(self, name) is not None:
                raise ValueError(f"`{name}` is not of `protocol: {self.protocol}`: leave it out")
        if self.protocol == "v2":
            return
        if isinstance(self.features, dict):
            raise ValueError("features: a list of names, in their order; JSON has types of its own")
        placed = [one for one in PLACEHOLDERS if one in _texts(self.request)]
        if self.request is not None and not {"$rows", "$arrays"} & set(placed):
            raise ValueError("request: $rows or $arrays has to stand where the rows belong")

    def take_features(self, declared: dict[str, str] | None) -> None:
        """Take over the features that the model declares, unless named here.

        Raises
        ------
        ValueError
            Nobody names them, and they are needed; or a declared type is none of a tensor.
        """
        self._declared = declared
        needs = self.protocol == "v2" or bool({"$arrays", "$features"} & set(_texts(self.request)))
        if self.features is None and needs:
            if not declared:
                raise ValueError("model.features: name the features, in the order in which the model takes them")
            for name, kind in declared.items():
                if self.protocol == "v2" and kind not in OF_FEATURES:
                    raise ValueError(f"model.features: {name} is declared as {kind}: say which type its tensor has")
        if self.input is not None and "BYTES" in self.types.values():
            raise ValueError(
                "model.input: one tensor of all features holds numbers, and "
                f"{next(name for name, kind in self.types.items() if kind == 'BYTES')} is text: leave `input` out"
            )

    @property
    def types(self) -> dict[str, DataType]:
        """Features with tensor types, in order; empty where rows name their own."""
        if isinstance(self.features, dict):
            return self.features
        if self.features is not None:
            return dict.fromkeys(self.features, "FP64")
        return {name: OF_FEATURES.get(kind, "FP64") for name, kind in (self._declared or {}).items()}

    @property
    def result(self) -> Predicts:
        """The kind of the model's prediction."""
        return self.predicts or ("probabilities" if self.classes else "number")

    @property
    def spec(self) -> dict[str, Any]:
        """The settings that identify the model, without patience and access."""
        own = ("served", "protocol", "input", "output", "classes", "request", "answer")
        spec = self.model_dump(mode="json", include=set(own), exclude_none=True)
        spec.pop("request" if self.protocol == "v2" else "", None)
        if self.protocol == "v2":
            spec.pop("answer")
        features = dict(self.types) if self.protocol == "v2" else list(self.types)
        return {**spec, **({"features": features} if features else {}), "predicts": self.result}


def check_address(value: str) -> None:
    """Check that a text is the address of a model.

    Raises
    ------
    ValueError
        It is none, or names a user.
    """
    if not is_http(value):
        raise ValueError("expected http://HOST:PORT/PATH or https://HOST:PORT/PATH")
    parts = urlsplit(value)
    if "@" in parts.netloc:
        raise ValueError("the address names a user: give token_env, token_file or headers_env, which are not printed")
    if parts.query or parts.fragment:
        raise ValueError("an address without ? and #")


def is_address_allowed(address: str, allowed: Any) -> bool:
    """Return whether an address is below an allowed prefix.

    Scheme, host and port are the same, and the prefix's path leads there: whole segments of it, without `..`.
    """
    try:
        check_address(address)
    except ValueError:
        return False
    wanted = urlsplit(address)
    if "%" in wanted.path or any(part in (".", "..") for part in wanted.path.split("/")):
        return False
    for one in allowed:
        if not is_address(one):
            continue
        given = urlsplit(one)
        if (given.scheme, given.hostname, _port(given)) != (wanted.scheme, wanted.hostname, _port(wanted)):
            continue
        if f"{wanted.path.rstrip('/')}/".startswith(f"{given.path.rstrip('/')}/"):
            return True
    return False


def is_address(text: str) -> bool:
    """Return whether an entry of `control.allowed` is an address."""
    return text.startswith(("http://", "https://"))


def _port(parts: Any) -> int:
    return parts.port or {"http": 80, "https": 443}[parts.scheme]


def _texts(value: Any) -> list[str]:
    """Return the texts in a template, at any depth."""
    if isinstance(value, str):
        return [value]
    values = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for one in values for text in _texts(one)]
