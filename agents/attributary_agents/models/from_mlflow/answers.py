"""Answers of MLflow's registry: a version, or a line of explanation.

The line says what the registry lacks, and has instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attributary_explainers.wording import did_you_mean, show_names

from ...config.mlflow import Registered
from ...errors import DeploymentError, FilesAwayError, RegistryAwayError
from ...logs import without_user
from .asking import MOST_NAMES

EXTRA = "model.mlflow needs mlflow: pip install 'attributary[mlflow]'"
NOT_SAID = "mlflow.tracking_uri is not given, and neither is MLFLOW_TRACKING_URI"

_SHOWN = 10

_QUERY = re.compile(r"(\w://[^\s?'\"]+)\?[^\s'\"]+")
"""An address with a query, which may be a signature."""


def question(wanted: Registered) -> dict[str, str | None]:
    """Return how the registry is asked for this."""
    return {"name": wanted.name, "alias": wanted.alias, "version": wanted.version}


def public(said: str) -> str:
    """Remove passwords and signatures of addresses from MLflow's messages.

    The messages go to dead letters.

    Examples
    --------
    >>> public("403 Forbidden for url: https://me:secret@store/4/MLmodel?X-Amz-Signature=9f2c")
    '403 Forbidden for url: https://***@store/4/MLmodel?***'
    """
    return _QUERY.sub(r"\1?***", without_user(said))


def check_there(answer: Mapping[str, Any]) -> None:
    """Raise RegistryAwayError where there is no answer."""
    if "away" in answer:
        raise RegistryAwayError(public(answer["away"]))


def resolved(wanted: Registered, answer: Mapping[str, Any]) -> dict[str, str]:
    """Return the resolved version, or the message why it is missing.

    As `{"version": …}` or `{"missing": …}`.

    Raises
    ------
    RegistryAwayError
        There is no answer.
    """
    check_there(answer)
    return {"missing": _lack(wanted, answer)} if "lacks" in answer else {"version": answer["version"]}


def digest_in(wanted: Registered, answer: Mapping[str, Any]) -> str:
    """Return the digest of the files that have been fetched.

    Raises
    ------
    RegistryAwayError
        There is no answer.
    FilesAwayError
        There is such a version, and its files could not be had.
    DeploymentError
        There are no such files.
    """
    check_there(answer)
    if "unfetched" in answer:
        raise FilesAwayError(f"{wanted}: its files cannot be had: {public(answer['unfetched'])}")
    if "lacks" in answer:
        raise DeploymentError(_lack(wanted, answer), "wrong_artefact")
    return str(answer["digest"])


def _lack(wanted: Registered, answer: Mapping[str, Any]) -> str:
    what, has = answer["lacks"], list(answer.get("has", ()))
    if what in _OTHER:
        return _OTHER[what]
    if what == "alias":
        said = f"no alias '{wanted.alias}'; it has {', '.join(has) or 'none'}"
    elif what == "version":
        more = ", …" if len(has) > _SHOWN or len(has) == MOST_NAMES else ""
        said = f"no version {wanted.version}; it has {', '.join(has[:_SHOWN]) or 'none'}{more}"
    elif what == "model":
        near = did_you_mean(wanted.name, has) or f"; it has {show_names(has) if has else 'none'}"
        said = f"no model '{wanted.name}' in the registry{near}"
    else:
        said = public(str(answer.get("said")))
    return f"model.mlflow: {wanted}: {said}"


_OTHER = {"extra": EXTRA, "uri": NOT_SAID}
