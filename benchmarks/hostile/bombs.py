"""Batches of Kafka that are small when they are sent and huge when they are unpacked, made without unpacking them."""

from __future__ import annotations

import gzip
import struct
import time
from collections.abc import Callable

import cramjam
from aiokafka import AIOKafkaProducer
from aiokafka.record.util import calc_crc32c, encode_varint

CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}
RECORD_BYTES = 500_000_000
"""Zeros in each record of a bomb: the length of one is a 32-bit number."""

_ZEROS = 65_536


def _many_members(pack: Callable[[bytes], bytes]) -> Callable[[bytes, int], bytes]:
    zeros = pack(b"\0" * 64 * _ZEROS)

    def part(text: bytes, n: int) -> bytes:
        return pack(text) + zeros * (n // 64) + pack(b"\0" * _ZEROS) * (n % 64)

    return part


def _gzip(text: bytes) -> bytes:
    return gzip.compress(text, 9)


def _snappy(text: bytes) -> bytes:
    block = bytes(cramjam.snappy.compress_raw(text))
    return struct.pack(">i", len(block)) + block


def _lz4_frame(text: bytes) -> bytes:
    packer = cramjam.lz4.Compressor(level=1, content_checksum=False, block_linked=False)
    packer.compress(text)
    return bytes(packer.finish())


_LZ4_HEADER = 7


def _lz4(text: bytes) -> bytes:
    """Return the frame's blocks alone."""
    return b"".join(_lz4_frame(text[i : i + _ZEROS])[_LZ4_HEADER:-4] for i in range(0, len(text), _ZEROS))


def _zstd(texts: list[tuple[bytes, int]]) -> bytes:
    packer = cramjam.zstd.Compressor(3)
    done = b""
    for text, n in texts:
        packer.compress(text)
        for _ in range(n // 64):
            packer.compress(b"\0" * 64 * _ZEROS)
        for _ in range(n % 64):
            packer.compress(b"\0" * _ZEROS)
        done += bytes(packer.flush())
    return done + bytes(packer.finish())


def packed(codec: str, texts: list[tuple[bytes, int]]) -> bytes:
    """Return texts, each with so many times 64 KiB of zeros behind it, packed by a codec as Kafka has it."""
    if codec == "zstd":
        return _zstd(texts)
    make = {"gzip": _gzip, "snappy": _snappy, "lz4": _lz4}[codec]
    part = _many_members(make)
    body = b"".join(part(text, n) for text, n in texts)
    if codec == "snappy":
        return b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1) + body
    return _lz4_frame(b"a")[:_LZ4_HEADER] + body + b"\0\0\0\0" if codec == "lz4" else body


def bomb(codec: str, n_bytes: int) -> bytes:
    """Return a batch whose records hold `n_bytes` of zeros, or a little more."""
    n_records = -(-n_bytes // RECORD_BYTES)
    n_blocks = -(-n_bytes // n_records // _ZEROS)
    texts: list[tuple[bytes, int]] = []
    for offset in range(n_records):
        body = b"\0\0" + _varint(offset) + _varint(1) + b"m" + _varint(n_blocks * _ZEROS)  # and no header: a 0
        text = _varint(len(body) + n_blocks * _ZEROS + 1) + body
        texts.append(((b"\0" if offset else b"") + text, n_blocks))
    texts.append((b"\0", 0))
    data = packed(codec, texts)
    now = int(time.time() * 1000)
    tail = struct.pack(">hiqqqhii", CODECS[codec], n_records - 1, now, now, -1, -1, -1, n_records) + data
    head = struct.pack(">qiibI", 0, 9 + len(tail), -1, 2, calc_crc32c(tail))
    return head + tail


def _varint(value: int) -> bytes:
    out = bytearray()
    encode_varint(value, out.append)
    return bytes(out)


class _Made:
    """Stands for aiokafka's builder of a batch that has been made already."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def build(self) -> bytearray:
        return bytearray(self._data)

    def size(self) -> int:
        return len(self._data)


async def send_made(bootstrap: str, topic: str, data: bytes, n_records: int) -> None:
    """Write a batch as it is to partition 0; raise what the broker answers."""
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap, max_request_size=2**27, request_timeout_ms=60_000)
    await producer.start()
    try:
        batch = producer.create_batch()
        batch._builder, batch._relative_offset = _Made(data), n_records
        await (await producer.send_batch(batch, topic, partition=0))
    finally:
        await producer.stop()
