"""Plain data are packed and unpacked; what would be longer than a worker writes, or no plain data, is not unpacked."""

from __future__ import annotations

import tracemalloc

import orjson
import pytest
import zstandard

from attributary_agents.errors import DamagedStateError, ForeignTypeError
from attributary_agents.state import codec as packing
from attributary_agents.state.codec import MOST_OF_SHORT, pack, unpack
from tests.agents.stand_ins import CountingClassifier

MAGIC = b"TEST"


def packed(frame: bytes) -> bytes:
    return MAGIC + orjson.dumps({}) + b"\n" + frame


@pytest.mark.parametrize("known", [True, False], ids=["size in the head", "no size in the head"])
def test_a_frame_that_grows_without_bound_is_not_unpacked(known: bool) -> None:
    n = 2 * MOST_OF_SHORT
    compressor = zstandard.ZstdCompressor(write_content_size=known).compressobj(size=n if known else -1)
    frame = compressor.compress(bytes(n)) + compressor.flush()
    assert len(frame) < 20_000
    tracemalloc.start()
    with pytest.raises(DamagedStateError, match=r"bytes when it is unpacked, and 33554432 are the most"):
        unpack(MAGIC, packed(frame))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()


def test_a_frame_that_lies_about_its_size_is_torn() -> None:
    frame = bytearray(zstandard.ZstdCompressor().compress(bytes(200_000)))
    assert frame[4] & 0xC0 == 0x80, "four bytes of size"
    frame[5:9] = (1000).to_bytes(4, "little")
    with pytest.raises(DamagedStateError):
        unpack(MAGIC, packed(bytes(frame)))


def test_data_that_can_be_packed_more_tightly_are_padded_and_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST_OF_SHORT", 100_000)
    data = {"x": "a" * 1_000_000}
    blob = pack(MAGIC, data)
    assert 1_000_000 / 64 < len(blob) < 1_000_000 / 60
    assert unpack(MAGIC, blob) == data


def test_anything_but_plain_data_is_refused() -> None:
    blob = pack(MAGIC, {"model": CountingClassifier()})
    with pytest.raises(ForeignTypeError, match="CountingClassifier"):
        unpack(MAGIC, blob)
