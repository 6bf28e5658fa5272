"""Finds the settings of a model id, by the id or by a template.

An id with `*`, `?` or `[` below `models:` is a template: a glob that stands for all ids that it matches. No record can
have such an id as its own.
"""

from __future__ import annotations

import re
import unicodedata
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase, translate
from functools import lru_cache
from typing import Any

from attributary_topics import MAX_MODEL_ID_BYTES, InvalidRecordError, decode_model_id

from .models import ModelConfig, ModelSettings, with_defaults

MAX_MODELS = 20_000
"""Models of a template at most, where the configuration does not say it."""

IDLE_S = 86_400.0
"""Seconds of stream time after which a model of a template rests, where the configuration does not say it."""

_REMEMBERED = 2**16
"""Keys of records whose template is remembered."""

_GLOB = re.compile(r"[*?\[]")


def is_template(name: str) -> bool:
    """Return whether a key of `models:` is a template."""
    return _GLOB.search(name) is not None


class Finder:
    """Finder of settings: an id wins over templates, a longer over a shorter."""

    def __init__(self, models: Mapping[str, ModelConfig]) -> None:
        self.models = models
        self.ids = tuple(name for name in models if not is_template(name))
        self.templates = tuple(sorted(filter(is_template, models), key=lambda name: (-len(name), name)))
        self._matches = [(name, re.compile(translate(name)).match) for name in self.templates]
        self._keys = {model_id.encode(): model_id for model_id in self.ids}
        self._of_template = lru_cache(_REMEMBERED)(self._find_id)

    def __reduce__(self) -> tuple[type[Finder], tuple[Mapping[str, ModelConfig]]]:
        return Finder, (self.models,)

    def name_of(self, model_id: str) -> str | None:
        """Return the key of `models:` for a model id: itself, a template or None."""
        if is_template(model_id):
            return None
        return model_id if model_id in self.models else self.template_of(model_id)

    def template_of(self, model_id: str) -> str | None:
        """Return the template of a model id without settings of its own, or None."""
        if not self.templates or model_id in self.models or is_template(model_id):
            return None
        return next((name for name, matches in self._matches if matches(model_id)), None)

    def id_of_key(self, key: bytes | None) -> str | None:
        """Return the configured model id in a record's key, or None."""
        if key is None:
            return None
        known = self._keys.get(key)
        if known is not None or not self.templates or len(key) > MAX_MODEL_ID_BYTES:
            return known
        return self._of_template(key)

    def _find_id(self, key: bytes) -> str | None:
        try:
            model_id = decode_model_id(key)
        except InvalidRecordError:
            return None
        return None if self.name_of(model_id) is None else model_id


def with_templates(models: dict[str, Any]) -> dict[str, Any]:
    """Return the section `models:`, with template settings filled in.

    They are those that models can have in common: how a model is made is said of each.
    """
    templates = sorted((name for name in models if isinstance(name, str) and is_template(name)), key=len, reverse=True)
    return {name: _with_template(name, own, models, templates) for name, own in models.items()} if templates else models


def _with_template(name: Any, own: Any, models: dict[str, Any], templates: list[str]) -> Any:
    if not isinstance(name, str) or name in templates:
        return own
    settings = next((models[template] for template in templates if fnmatchcase(name, template)), None)
    if not isinstance(settings, dict):
        return own
    return with_defaults(own, {key: value for key, value in settings.items() if key in ModelSettings.model_fields})


def check_templates(models: Mapping[str, ModelConfig]) -> None:
    """Raise ValueError for wrong settings of templates, or ambiguous globs."""
    for name, model in models.items():
        if not is_template(name):
            for key in ("max_models", "idle"):
                if getattr(model, key) is not None:
                    raise ValueError(f"{name}.{key}: only a template has it, a model id with *, ? or [")
        elif model.sharded:
            raise ValueError(f"{name}.sharded: a template's models cannot be sharded: give the model's own id")
        elif model.registered is not None:
            raise ValueError(
                f"{name}.model.mlflow: a version of a registry is deployed to one model: give the model's own id, or "
                "a folder below artefacts.directory"
            )
    templates = sorted(filter(is_template, models))
    for name in templates:
        if common_id(name, name) is None:
            raise ValueError(f"{name}: no model id matches it: one has no *, ? or [")
    for n, one in enumerate(templates):
        for other in templates[n + 1 :]:
            if len(one) == len(other) and (both := common_id(one, other)) is not None:
                raise ValueError(
                    f"the templates {one!r} and {other!r} are equally long, and both match {both!r}: the longer one "
                    "would win; write one of them longer, or other ids"
                )


def common_id(one: str, other: str) -> str | None:
    """Return a shortest id that both globs match, or None.

    It is sought over all pairs of places in the two globs. Their sets of characters are unions of ranges, so one
    character on each side of each end stands for all others.
    """
    first, second = list(_tokens(one)), list(_tokens(other))
    ends = {*one, *other, "0"}
    characters = sorted(
        (chr(code) for end in ends for code in range(max(ord(end) - 1, 32), ord(end) + 2) if _may_be(code)),
        key=lambda character: (character not in ends, not character.isalnum(), character),
    )
    # Steps that read no character come first, so that the first way to the end is a shortest one.
    seen: set[tuple[int, int]] = set()
    left = deque([((0, 0), "")])
    while left:
        place, text = left.popleft()
        if place == (len(first), len(second)):
            return text
        if place in seen:
            continue
        seen.add(place)
        for following, character in _steps(first, second, *place, characters):
            if character:
                left.append((following, text + character))
            else:
                left.appendleft((following, text))
    return None


def _steps(
    first: list[str], second: list[str], i: int, j: int, characters: Iterable[str]
) -> Iterator[tuple[tuple[int, int], str]]:
    """Yield the next places in a glob, each with the character read.

    The end of a star reads no character.
    """
    one = first[i] if i < len(first) else None
    other = second[j] if j < len(second) else None
    if one == "*":
        yield (i + 1, j), ""
    if other == "*":
        yield (i, j + 1), ""
    if one is not None and other is not None:
        both = next((c for c in characters if _fits(c, one) and _fits(c, other)), None)
        if both is not None:
            yield (i + (one != "*"), j + (other != "*")), both


def _fits(character: str, token: str) -> bool:
    return character == token if len(token) == 1 and token not in "*?" else fnmatchcase(character, token)


def _may_be(code: int) -> bool:
    """Return whether a model id may have the character."""
    return code < 0x110000 and not unicodedata.category(chr(code)).startswith("C") and chr(code) not in "*?["


def _tokens(glob: str) -> Iterator[str]:
    """Yield the parts of a glob: each matches a character, or is a star."""
    at = 0
    while at < len(glob):
        end = at + 1
        if glob[at] == "[":
            last = glob.find("]", at + 2 + (glob[at + 1 : at + 2] == "!"))
            end = last + 1 if last >= 0 else end
        yield glob[at:end]
        at = end


def example_of(template: str) -> str:
    """Return an id that a template matches, such as `store-0` of `store-*`."""
    with_text = "".join("?" if token == "*" else token for token in _tokens(template))
    found = common_id(template, with_text)
    if found is None:
        raise ValueError(f"{template!r} matches no model id")
    return found
