"""The note of a partition: what the next owner concludes from it, owner after owner."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from attributary_agents.config.templates import Finder
from attributary_agents.errors import DamagedStateError
from attributary_agents.models.subprocess.process import ApartError
from attributary_agents.state.names import note_key, wanted_names
from attributary_agents.worker.poison import MAX_ENDED, MAX_MADE, Begun, Endings, Note, decode_note, encode_note

REACH = 10


class Died(Exception):  # noqa: N818 - it stands for the end of a process
    pass


class Table:
    """What survives an owner."""

    def __init__(self) -> None:
        self.blobs: dict[bytes, bytes] = {}
        self.n_writes = 0

    def load(self, name: bytes) -> bytes | None:
        return self.blobs.get(name)

    async def put(self, name: bytes, blob: bytes) -> None:
        self.blobs[name] = blob
        self.n_writes += 1

    @property
    def note(self) -> Note:
        return decode_note(self.blobs[note_key(0)])


class Stream:
    """A partition of n observations, its checkpoint, and one owner after the other.

    Parameters
    ----------
    killers
        Observations at which every process ends that handles them.
    """

    def __init__(self, n: int, killers: set[int] | None = None) -> None:
        self.n = n
        self.killers = killers or set()
        self.killing_models: set[str] = set()
        self.table = Table()
        self.checkpointed = -1
        self.handled: list[int] = []
        self.refused_models: list[str] = []
        self.n_trials = 0
        self.n_made = 0
        """Trials of which the owner is killed while it makes the process."""

    def trial(self, kills: bool) -> Callable[[Begun], Awaitable[None]]:
        async def run(begun: Begun) -> None:
            self.n_trials += 1
            if self.n_made and self.n_trials <= self.n_made:
                raise Died
            await begun()
            if kills:
                raise ApartError("ended", "its process ended with SIGKILL")

        return run

    async def own(
        self, *, checkpoint_every: int = 0, dies_at: int | None = None, until: int | None = None, closes: bool = True
    ) -> Endings:
        """Take the partition over, handle what is not in its checkpoint, and release it; or die on the way."""
        endings = Endings(self.table, 0, self.checkpointed, REACH)
        await endings.open()
        for model_id in ("a", "b"):
            trial = self.trial(model_id in self.killing_models)
            if not await endings.allows_restore(model_id, self.checkpointed, trial):
                self.refused_models.append(model_id)
            elif model_id in self.killing_models:
                raise Died
        await endings.restored()
        done, handled = self.checkpointed, self.handled[: self.checkpointed + 1]
        for offset in range(done + 1, self.n if until is None else until):
            is_allowed = True
            if endings.concerns(offset, self.checkpointed):
                is_allowed = await endings.allows(offset, self.checkpointed, self.trial(offset in self.killers))
            if is_allowed and (offset in self.killers or offset == dies_at):
                raise Died
            handled.append(offset if is_allowed else ~offset)
            done = offset
            if checkpoint_every and (offset + 1) % checkpoint_every == 0:
                self.checkpointed, self.handled = done, list(handled)
        self.checkpointed, self.handled = done, handled
        if closes:
            await endings.close()
        return endings

    def supervise(self, **how: Any) -> int:
        """Start owners until one comes to the end; return how many died."""
        for n_died in range(20):
            try:
                asyncio.run(self.own(**how))
            except Died:
                continue
            return n_died
        raise AssertionError("owners die for ever")


def test_in_normal_running_an_owner_writes_one_note_and_a_release_another() -> None:
    stream = Stream(1000)
    asyncio.run(stream.own(checkpoint_every=5))
    assert stream.table.n_writes == 2
    assert not stream.table.note.is_open
    stream.n = 2000
    asyncio.run(stream.own(checkpoint_every=5))
    assert (stream.table.n_writes, stream.n_trials) == (4, 0)


@pytest.mark.parametrize("at", [0, 3, 9, 10, 17, 99])
@pytest.mark.parametrize("checkpoint_every", [0, 1, 4, 10])
def test_an_observation_ends_two_owners_and_nothing_else_is_refused(at: int, checkpoint_every: int) -> None:
    stream = Stream(100, {at})
    assert stream.supervise(checkpoint_every=checkpoint_every) == 2
    assert stream.handled == [~n if n == at else n for n in range(100)]
    assert stream.n_trials == 1


def test_models_that_are_asked_for_later_are_noted_until_a_checkpoint_is_past_what_the_owner_before_did() -> None:
    stream = Stream(50)
    with pytest.raises(Died):
        asyncio.run(stream.own(dies_at=7))
    endings = Endings(stream.table, 0, stream.checkpointed, REACH)

    async def ask(model_id: str, checkpointed: int) -> str:
        assert await endings.allows_restore(model_id, checkpointed, stream.trial(kills=False))
        named = stream.table.note.restore
        await endings.restored()
        return named

    async def run() -> None:
        await endings.open()
        assert await ask("c", stream.checkpointed) == "c"
        assert await ask("d", endings.repeats_to - 1) == "d"
        n_writes = stream.table.n_writes
        assert await ask("e", endings.repeats_to) == ""
        assert stream.table.n_writes == n_writes

    asyncio.run(run())


def test_several_of_them_end_two_owners_each() -> None:
    stream = Stream(100, {3, 4, 60})
    assert stream.supervise(checkpoint_every=10) <= 6
    assert stream.handled == [~n if n in (3, 4, 60) else n for n in range(100)]


@pytest.mark.parametrize("again", range(1, 5))
def test_an_owner_that_is_killed_by_others_costs_no_observation(again: int) -> None:
    """The suspect survives its trial, however often the careful owners are killed just there, up to twice."""
    stream = Stream(50)
    for n in range(again):
        with pytest.raises(Died):
            asyncio.run(stream.own(dies_at=7 + 2 * n))
    assert stream.supervise() == 0
    assert stream.handled == list(range(50))


def test_a_verdict_stands_before_the_dead_letter_and_is_the_same_for_a_successor() -> None:
    stream = Stream(50, {7})
    for _ in range(2):
        with pytest.raises(Died):
            asyncio.run(stream.own())
    with pytest.raises(Died):
        asyncio.run(stream.own(dies_at=20))
    assert stream.table.note.ended == [7]
    stream.killers = set()  # another trial would let it pass: there is none
    n_trials = stream.n_trials
    assert stream.supervise() == 0
    assert stream.handled[7] == ~7
    assert stream.n_trials <= n_trials + 1, "that of the observation at which the third owner died"


def test_what_was_refused_is_forgotten_with_the_checkpoint() -> None:
    stream = Stream(50, {7})
    stream.supervise()
    stream.n = 60
    asyncio.run(stream.own())
    note = stream.table.note
    assert (note.ended, note.suspects, note.is_open) == ([], {}, False)


def test_a_trial_that_ends_the_worker_too_is_not_made_for_ever() -> None:
    stream = Stream(20, {7})

    def trial(_kills: bool) -> Callable[[Begun], Awaitable[None]]:
        async def run(begun: Begun) -> None:
            await begun()
            raise Died

        return run

    stream.trial = trial  # type: ignore[method-assign]
    assert stream.supervise() == 4
    assert stream.handled[7] == ~7


@pytest.mark.parametrize("n_made", range(1, 8))
@pytest.mark.parametrize("what", ["observation", "model"])
def test_owners_that_end_while_they_make_the_process_say_nothing_of_the_suspect(what: str, n_made: int) -> None:
    """Making it takes seconds, so that is when others kill a worker; a suspect is condemned by what its work does."""
    stream = Stream(50)
    if what == "observation":
        for _ in range(2):
            with pytest.raises(Died):
                asyncio.run(stream.own(dies_at=7))
    else:
        stream.killing_models = {"b"}
        for _ in range(2):
            with pytest.raises(Died):
                asyncio.run(stream.own())
        stream.killing_models = set()
    stream.n_made = n_made
    assert stream.supervise() == min(n_made, MAX_MADE)
    assert (stream.handled, stream.refused_models) == (list(range(50)), [])
    assert stream.table.note.trying == ""
    asyncio.run(stream.own())
    assert stream.table.note.trials == {}, "with the checkpoint it is suspect no more"
    assert stream.n_trials == min(n_made + 1, MAX_MADE), "beyond that it is done without one"


@pytest.mark.parametrize("n_made", range(6))
def test_what_ends_workers_is_refused_although_the_making_of_its_process_ended_some(n_made: int) -> None:
    stream = Stream(50, {7})
    stream.n_made = n_made
    # Two before it is suspect. Without a trial it ends as many more as it takes to be sure.
    assert stream.supervise() == 2 + min(n_made, MAX_MADE) + (MAX_ENDED - 1 if n_made >= MAX_MADE else 0)
    assert stream.handled == [~n if n == 7 else n for n in range(50)]


@pytest.mark.parametrize("kind", ["start", "failed", "size"])
def test_a_process_that_could_not_try_it_is_no_proof(kind: str) -> None:
    stream = Stream(20)

    def trial(_kills: bool) -> Callable[[Begun], Awaitable[None]]:
        async def run(_begun: Begun) -> None:
            raise ApartError(kind, "no process")

        return run

    stream.trial = trial  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(Died):
            asyncio.run(stream.own(dies_at=7))
    assert stream.supervise() == 0
    assert stream.handled == list(range(20))


def test_checkpoints_that_are_put_off_widen_what_is_noted() -> None:
    """An owner that handles more than `reach` without a checkpoint says so, once in as many observations."""
    stream = Stream(100, {73})
    assert stream.supervise() == 2
    assert stream.handled[73] == ~73
    fine = Stream(100)
    asyncio.run(fine.own())
    assert fine.table.n_writes == 2 + 100 // REACH - 1


def test_a_model_that_ends_those_that_restore_it_is_refused_until_it_is_mended() -> None:
    stream = Stream(20)
    stream.killing_models = {"b"}
    assert stream.supervise() == 2
    assert stream.refused_models == ["b"]
    asyncio.run(stream.own())
    assert stream.refused_models == ["b", "b"]
    stream.killing_models = set()
    asyncio.run(stream.own())
    assert stream.refused_models == ["b", "b"]
    n_trials = stream.n_trials
    asyncio.run(stream.own())
    assert stream.n_trials == n_trials, "no longer suspect"


def test_a_deployment_that_two_owners_began_is_not_begun_again() -> None:
    async def begin(offset: int) -> bool:
        endings = Endings(table, 0, -1, REACH)
        await endings.open()
        return await endings.begin_deployment(offset)

    async def leave(offset: int) -> None:
        endings = Endings(table, 0, -1, REACH)
        await endings.begin_deployment(offset)
        await endings.leave_deployment()

    table = Table()
    asyncio.run(leave(5))
    assert [asyncio.run(begin(5)) for _ in range(4)] == [True, True, False, False]
    assert asyncio.run(begin(6))


@pytest.mark.parametrize(
    "blob", [b"", b"{", b"[]", b'{"format": 2}', b'{"format": 1, "odd": 1, "deployment": [0, 0]}', b'{"format": 1}']
)
def test_a_note_that_cannot_be_read_says_nothing(blob: bytes) -> None:
    assert decode_note(blob) == Note()


def test_a_note_survives_its_bytes() -> None:
    note = Note(True, 7, 3, "m", (4, 1), {"5": 2}, {"n": 1}, [9], "suspect", {"suspect": 2})
    assert decode_note(encode_note(note)) == note
    assert decode_note(None) == Note()
    assert wanted_names(Finder({}))(note_key(12), 12)


def test_a_damaged_note_makes_the_owner_careful() -> None:
    class Damaged(Table):
        def load(self, name: bytes) -> bytes | None:
            raise DamagedStateError("torn")

    assert Endings(Damaged(), 0, -1, REACH).is_careful
