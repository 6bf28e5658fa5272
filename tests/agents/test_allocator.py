"""Memory that is free goes back to the system, models that refer to themselves included; numpy keeps its speed."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref

import pytest

from attributary_agents import allocator

PROGRAM = """
import ctypes
from attributary_agents.allocator import bound_heaps

libc = ctypes.CDLL(None)
libc.malloc.restype, libc.malloc.argtypes, libc.free.argtypes = ctypes.c_void_p, [ctypes.c_size_t], [ctypes.c_void_p]

class Info(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in "arena n small mapped mapped_bytes u f used free keep".split()]

libc.mallinfo2.restype = Info
assert bound_heaps()
libc.free(libc.malloc(20 << 20))
before = libc.mallinfo2().mapped
block = libc.malloc(300_000)
print(libc.mallinfo2().mapped - before)
"""


@pytest.mark.skipif(allocator._glibc() is None, reason="the C library is not glibc")
def test_arrays_are_taken_from_the_heap_once_one_of_their_size_was_freed() -> None:
    """A block outside of the heap is mapped and cleared anew each time: an array of 1 MB costs ten times as much."""
    found = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True).stdout
    assert found == "0\n"


class _Model:
    def __init__(self) -> None:
        self.itself = self


def test_a_model_that_refers_to_itself_is_freed_before_memory_is_given_back() -> None:
    gc.disable()
    try:
        model = _Model()
        gone = weakref.ref(model)
        del model
        assert gone() is not None
        allocator.FreedMemory(1).collect()
        assert gone() is None
    finally:
        gc.enable()


def test_only_where_models_have_gone_is_all_looked_through_after_a_rebalance() -> None:
    gc.disable()
    try:
        memory = allocator.FreedMemory(1)
        for has_gone in (False, True, False):
            model = _Model()
            gone = weakref.ref(model)
            del model
            if has_gone:
                memory.note_gone()
            memory.settle()
            assert (gone() is None) is has_gone
    finally:
        gc.enable()


def test_what_is_set_aside_is_collected_within_the_hour() -> None:
    now = [0.0]
    memory = allocator.FreedMemory(allocator.MANY, lambda: now[0])
    try:
        model = _Model()
        gone = weakref.ref(model)
        memory.set_aside()
        del model
        gc.collect()
        memory.tick(n_done=0)
        assert gone() is not None
        now[0] = allocator.COLLECT_EVERY_S
        memory.tick(n_done=0)
        assert gone() is None
    finally:
        gc.unfreeze()


def test_models_that_rest_are_collected_once_half_as_many_have_gone_as_are_left() -> None:
    memory = allocator.FreedMemory(allocator.MANY, lambda: 0.0)
    n = allocator.MANY
    try:
        model = _Model()
        gone = weakref.ref(model)
        memory.set_aside()
        del model
        memory.note_rested(n, 2 * n + 2)
        memory.tick(n_done=0)
        assert gone() is not None
        memory.note_rested(1, 2 * n + 2)
        memory.note_rested(0, 10 * n)
        memory.tick(n_done=0)
        assert gone() is None
    finally:
        gc.unfreeze()


def test_few_models_are_left_to_the_collector() -> None:
    memory = allocator.FreedMemory(allocator.MANY - 1)
    model = _Model()
    gone = weakref.ref(model)
    memory.set_aside()
    memory.tick(n_done=0)
    del model
    gc.collect()
    assert gone() is None


def test_of_few_models_what_was_set_aside_before_stays_so() -> None:
    memory = allocator.FreedMemory(allocator.MANY - 1)
    try:
        gc.freeze()
        n = gc.get_freeze_count()
        memory.note_gone()
        memory.settle()
        assert gc.get_freeze_count() >= n > 0
    finally:
        gc.unfreeze()


def test_what_was_needed_for_a_moment_is_given_back_once_and_not_too_often(monkeypatch: pytest.MonkeyPatch) -> None:
    now, trims = [0.0], list[float]()
    monkeypatch.setattr(allocator, "_trim", lambda: trims.append(now[0]))
    memory = allocator.FreedMemory(1, lambda: now[0])
    for second in range(1, 21):
        now[0] = float(second)
        memory.tick(n_done={7: 1, 8: 2, 9: 3}.get(second, 0 if second < 7 else 3))
    assert trims == [7.0, 12.0]


def test_elsewhere_nothing_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not allocator.bound_heaps()
    assert not allocator.FreedMemory(1).collect()


def test_what_is_there_before_the_first_model_is_looked_through_no_more() -> None:
    gc.disable()
    try:
        base, garbage = _Model(), _Model()
        gone = weakref.ref(garbage)
        del garbage
        allocator.set_base_aside()
        assert gone() is None  # it would be kept for good
        later = _Model()
        looked_through = {id(one) for one in gc.get_objects()}
        assert id(later) in looked_through
        assert id(base) not in looked_through
        model = _Model()
        gone = weakref.ref(model)
        del model
        memory = allocator.FreedMemory(allocator.MANY - 1)
        memory.note_gone()
        memory.settle()
        assert gone() is None
        assert id(base) not in {id(one) for one in gc.get_objects()}
    finally:
        gc.enable()
        gc.unfreeze()
