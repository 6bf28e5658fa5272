"""A served model in a library: what is sent again, what is final, and what is never followed or read to its end."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from support.models.served_models import ServedModels

from attributary_agents.config.reading import parse_config
from attributary_agents.config.served import ServedConfig
from attributary_agents.errors import ConfigError
from attributary_agents.models.artefacts.served import client as client_module
from attributary_agents.models.artefacts.served.client import Client
from attributary_agents.models.artefacts.served.errors import NotNowError, ServedError
from attributary_agents.models.artefacts.served.model import ServedModel, make_served
from attributary_agents.models.factory import make_model
from attributary_agents.models.trial import check_models
from attributary_agents.rehearsal.rehearsal import rehearse
from attributary_explainers import model_kind, resolve_loss


def double(rows: list[dict[str, Any]]) -> list[float]:
    return [2.0 * row["a"] for row in rows]


@pytest.fixture
def server() -> Iterator[ServedModels]:
    with ServedModels({"double": double}) as one:
        yield one


def model_of(server: ServedModels, **given: Any) -> ServedModel:
    settings = {"served": server.address("double"), "features": {"a": "FP64"}, "output": "predictions", **given}
    return make_served(ServedConfig.model_validate({"timeout": 0.3, **settings}))


def test_equal_rows_are_asked_once_and_many_in_several_requests(server: ServedModels) -> None:
    model = model_of(server, max_rows=3)
    assert model.predict_many([{"a": float(n % 5)} for n in range(20)]) == [2.0 * (n % 5) for n in range(20)]
    assert (server.n_rows["double"], server.n_requests["double"]) == (5, 2)


def test_a_number_is_a_regressors_and_probabilities_and_labels_are_a_classifiers(server: ServedModels) -> None:
    kinds = {"number": "squared", "label": "expected_zero_one"}
    for predicts, loss in kinds.items():
        assert resolve_loss(model_of(server, predicts=predicts), None).name == loss
    model = model_of(server, classes=["a", "b"])
    assert (model_kind(model), resolve_loss(model, None).name) == ("classifier", "brier")


@pytest.mark.parametrize("way", [500, 503, 429, 408, 401, 404, 302, "reset", "hang"])
def test_what_may_pass_is_sent_again(server: ServedModels, way: int | str) -> None:
    server.plan = [way]
    server.headers = {"Location": "http://127.0.0.1:1/"}
    assert model_of(server).predict_many([{"a": 1.0}]) == [2.0]
    assert server.failed[way] == 1


def test_it_fails_after_its_retries_with_what_came_back(server: ServedModels) -> None:
    server.plan = [503, 503, 503]
    with pytest.raises(NotNowError, match=r"^http://127.0.0.1:\d+/v2/models/double: it answers 503$"):
        model_of(server, retries=2).predict_many([{"a": 1.0}])
    assert server.plan == []


@pytest.mark.parametrize("way", [400, 413, 422])
def test_what_is_about_the_rows_is_final(server: ServedModels, way: int) -> None:
    server.plan = [way]
    with pytest.raises(ServedError, match=f"answers {way}: .*as told") as raised:
        model_of(server).predict_many([{"a": 1.0}])
    assert not isinstance(raised.value, NotNowError)
    assert server.failed == {way: 1}


def test_an_answer_has_a_bounded_length(server: ServedModels) -> None:
    server.models["double"] = lambda rows: [float(n) for n in range(len(rows) * 200_000)]
    with pytest.raises(ServedError, match="more than the 1048832 bytes"):
        model_of(server, timeout=10).predict_many([{"a": 1.0}])


def test_token_and_headers_come_from_files_and_the_environment_at_each_request(
    server: ServedModels, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text("first\n")
    monkeypatch.setenv("FRAUD_KEY", "of the environment")
    given = {"token_file": tmp_path / "token", "headers": {"X-Plain": "p"}, "headers_env": {"X-Key": "FRAUD_KEY"}}
    model = model_of(server, **given)
    model.predict_many([{"a": 1.0}])
    (tmp_path / "token").write_text("second")
    model.predict_many([{"a": 2.0}])
    seen = [{name.lower(): value for name, value in one.items()} for one in server.seen]
    assert [one["authorization"] for one in seen] == ["Bearer first", "Bearer second"]
    assert {(one["x-plain"], one["x-key"]) for one in seen} == {("p", "of the environment")}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"token_env": "NOT_THERE_AT_ALL"}, "model.token_env: the environment has no NOT_THERE_AT_ALL"),
        ({"headers_env": {"X-Key": "NOT_THERE_AT_ALL"}}, "model.headers_env.X-Key: the environment has no NOT_THERE"),
        ({"token_file": "gone"}, "model.token_file: cannot read gone: No such file or directory"),
        ({"token_file": "odd"}, "model.token_file: odd holds characters that no header may have"),
        ({"ca_file": "gone"}, "model.ca_file: gone: no such file or directory"),
        ({"ca_file": "odd"}, "model.ca_file: odd: "),
    ],
)
def test_a_start_says_what_a_served_model_cannot_be_asked_with(
    given: dict[str, Any], said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd").write_text("Schlüssel")
    model = {"served": "https://h", "features": ["a"], **given}
    with pytest.raises(ConfigError) as caught:
        check_models(parse_config({"models": {"m": {"model": model}}}))
    assert str(caught.value).startswith(f"models.m: {said}")
    assert "\n" not in str(caught.value)


def test_without_the_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs httpx: pip install 'attributary\[served\]'"):
        make_served(ServedConfig.model_validate({"served": "http://h", "features": ["a"]}))


def test_a_message_says_what_came_back(server: ServedModels) -> None:
    client = Client(ServedConfig(served=server.url, timeout=0.3))
    body = b'{"inputs": [{"name": "a", "shape": [1, 1], "datatype": "FP64", "data": [1.5]}]}'
    address, messages = server.address("double") + "/infer", []
    for way in (None, 503, 400, "hang", "reset", 302):
        server.plan = [way]
        try:
            messages.append(client.send(address, body, 1000)[:20].decode())
        except ServedError as error:
            messages.append(f"{type(error).__name__} {error}")
    server.stop()
    with pytest.raises(NotNowError, match=r"^connection refused$"):
        client.send(address, body, 1000)
    client.close()
    assert messages[0] == '{"model_name": "doub'
    assert messages[1] == "NotNowError it answers 503"
    assert messages[2].startswith("ServedError the endpoint answers 400")
    assert messages[3] == "NotNowError no answer within 0.3 s"
    assert messages[4].startswith("NotNowError ")
    assert messages[5] == "NotNowError it answers 302, and redirects are not followed"


def test_an_answer_that_comes_in_drops_has_its_time_too(server: ServedModels) -> None:
    """Each piece comes in time, and the whole does not."""

    def dribble() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
            with suppress(OSError):
                for _ in range(100):
                    connection.sendall(b" ")
                    time.sleep(0.05)

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=dribble, daemon=True).start()
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with pytest.raises(NotNowError, match=r"^no answer within 0\.3 s$"):
            Client(ServedConfig(served=address, timeout=0.3)).send(address, b"{}", 10_000)


def config_of(server: ServedModels, **given: Any) -> Any:
    model = {"served": server.address("double"), "output": "predictions", "timeout": 0.3, "retries": 0}
    return parse_config({"models": {"m": {"model": model, "features": {"a": "number", "b": "number"}, **given}}})


def test_a_served_model_does_not_learn_unless_somebody_says_so_and_that_is_refused(server: ServedModels) -> None:
    assert config_of(server).models["m"].learn is False
    with pytest.raises(ConfigError, match=r"models.m: a model that is served does not learn here: `learn: false`"):
        config_of(server, learn=True)
    with pytest.raises(ConfigError, match=r"model.features: name the features, in the order"):
        config_of(server, features=None)
    with pytest.raises(ConfigError, match=r"model.features: a is declared as any: say which type its tensor has"):
        config_of(server, features={"a": "any"})


def test_check_rehearses_it_against_its_endpoint(server: ServedModels) -> None:
    found = rehearse(config_of(server), "m")
    assert (found.problem, found.n_used) == (None, found.n_rows)
    assert found.evaluated == f"by {server.address('double')}, the rows of an observation in one request"
    assert found.n_explained > 0


def test_check_says_once_that_the_endpoint_is_away(server: ServedModels) -> None:
    config = config_of(server)
    server.stop()
    address = server.address("double")
    found = rehearse(config, "m")
    assert found.problem == (
        f"the endpoint does not answer: {address}: connection refused. Is model.served right, and is it there for this "
        "machine? A worker would wait for it"
    )


def test_check_says_what_a_row_is_refused_for(server: ServedModels) -> None:
    server.refuses = lambda row: True
    found = rehearse(config_of(server), "m")
    assert found.problem is not None
    assert found.problem.startswith(
        f"the endpoint {server.address('double')} does not take a row: the endpoint answers"
    )
    assert "400" in found.problem
    assert isinstance(make_model(config_of(server).models["m"]), ServedModel)
