"""Errors on their way back from a pool of processes."""

import pickle

import pytest

from attributary_explainers import IncrementalPFI, errors
from attributary_explainers.errors import InvalidParameterError

KINDS = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind is not InvalidParameterError])
def test_an_error_is_the_same_after_pickling(kind):
    again = pickle.loads(pickle.dumps(kind("what was wrong")))
    assert (type(again), str(again)) == (kind, "what was wrong")


def test_a_refused_parameter_is_the_same_after_pickling():
    with pytest.raises(InvalidParameterError) as raised:
        IncrementalPFI(lambda x: 0.0, loss="squard")
    again = pickle.loads(pickle.dumps(raised.value))
    assert (str(again), vars(again)) == (str(raised.value), vars(raised.value))
    assert "squared" in str(again)
