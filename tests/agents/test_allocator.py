"""Freed memory goes back to the system, also after a large block was freed; without glibc nothing is done."""

from __future__ import annotations

import subprocess
import sys

import pytest

from attributary_agents import allocator

PROGRAM = """
import ctypes
from attributary_agents.allocator import bound_heaps, give_back

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena n small mapped mapped_bytes u f used free keep".split()]

libc.mallinfo2.restype = Info
if {bounded}:
    assert bound_heaps()
libc.free(libc.malloc(20 << 20))
before = libc.mallinfo2().mapped
block = libc.malloc(300_000)
print(libc.mallinfo2().mapped - before)
give_back()
"""


@pytest.mark.skipif(allocator._glibc() is None, reason="the C library is not glibc")
def test_a_block_that_was_freed_does_not_move_the_next_ones_into_the_heap() -> None:
    def separate(bounded: bool) -> str:
        program = PROGRAM.replace("{bounded}", str(bounded))
        return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert separate(bounded=False) == "0\n", "as glibc does by itself"
    assert separate(bounded=True) == "1\n"


def test_elsewhere_nothing_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not allocator.bound_heaps()
    assert not allocator.give_back()
