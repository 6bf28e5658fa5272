"""With a key nothing is read that is signed with another one, or not at all."""

from __future__ import annotations

import asyncio

import pytest

from attributary_agents.errors import StateError
from attributary_agents.state.records import head_key
from attributary_agents.state.seal import Head, Seal

from .changelog import KEY, Log, blob, put


class TestSignature:
    def signed(self) -> Log:
        log = Log()
        put(log.owner(1, Seal(KEY)), b"m", blob(1, 35))
        return log

    def test_is_read_with_the_key_and_without_one(self) -> None:
        for seal in (Seal(KEY), Seal()):
            assert self.signed().owner(2, seal).load(b"m") == blob(1, 35)

    @pytest.mark.parametrize("accept_unsigned", [False, True])
    def test_another_key_is_refused(self, accept_unsigned: bool) -> None:
        with pytest.raises(StateError, match=r"with another key.*state\.key"):
            self.signed().owner(2, Seal(b"x" * 32, accept_unsigned=accept_unsigned)).load(b"m")

    def test_unsigned_is_refused_unless_accepted_and_signed_at_the_next_write(self) -> None:
        log = Log()
        put(log.owner(1), b"m", b"plain")
        with pytest.raises(StateError, match=r"is not signed.*accept_unsigned: true"):
            log.owner(2, Seal(KEY)).load(b"m")
        changing = log.owner(2, Seal(KEY, accept_unsigned=True))
        assert changing.load(b"m") == b"plain"
        put(changing, b"m", b"signed")
        assert log.owner(3, Seal(KEY)).load(b"m") == b"signed"

    def test_signing_what_is_there_signs_all_names_at_once_and_changes_no_byte(self) -> None:
        log, names = Log(), {b"m": b"plain", b"n": blob(2, 35), b"\0checkpoint/3": b"{}"}
        for name, content in names.items():
            put(log.owner(1), name, content)
        assert asyncio.run(log.owner(2).sign()) == asyncio.run(log.owner(2, Seal(KEY)).sign()) == 0
        changing = log.owner(2, Seal(KEY, accept_unsigned=True))
        assert asyncio.run(changing.sign()) == 3
        assert asyncio.run(changing.sign()) == 0
        signed = log.owner(3, Seal(KEY))
        assert {name: signed.load(name) for name in names} == names
        assert signed._records.n_foreign == 0

    @pytest.mark.parametrize("steps_before", range(12))
    def test_a_checkpoint_and_signing_write_a_name_one_after_the_other(self, steps_before: int) -> None:
        log = Log()
        put(log.owner(1), b"m", blob(1, 35))
        changing = log.owner(2, Seal(KEY, accept_unsigned=True))
        send = changing._send_record

        async def slowly(partition: int, key: bytes, value: bytes | None) -> object:
            await asyncio.sleep(0)
            return await send(partition, key, value)

        changing._send_record = slowly

        async def both() -> None:
            signing = asyncio.ensure_future(changing.sign())
            for _ in range(steps_before):
                await asyncio.sleep(0)
            await changing.put(b"m", blob(2, 38))
            await signing

        asyncio.run(both())
        assert changing.load(b"m") == log.owner(3, Seal(KEY)).load(b"m") == blob(2, 38)

    def test_signing_leaves_what_is_damaged_and_what_is_signed_with_another_key(self) -> None:
        log = self.signed()
        put(log.owner(2), b"n", blob(2, 35))
        log.records = [one for one in log.records if b"c" not in one[0] or one[0].startswith(b"m")]
        before = list(log.records)
        assert asyncio.run(log.owner(3, Seal(b"x" * 32, accept_unsigned=True)).sign()) == 0
        assert log.records == before

    def test_a_record_under_another_model_s_key_or_epoch_is_refused(self) -> None:
        (_, value) = next((key, value) for key, value in self.signed().records if key == head_key(b"m", 1))
        for key in (head_key(b"n", 1), head_key(b"m", 2)):
            log = Log()
            log.records = [(key, value)]
            with pytest.raises(StateError, match="another key"):
                log.owner(3, Seal(KEY)).load(key.split(b"\0")[0])

    def test_no_field_of_the_head_can_be_changed(self) -> None:
        log = Log()
        put(log.owner(1, Seal(KEY)), b"m", b"12345678")
        key, value = log.records[0]
        head, inline = Seal(KEY).read(key, value)
        forged = Head.of(b"87654321")
        line = Seal().write(key, Head(**{**vars(forged), "hmac": head.hmac}))
        assert inline == b"12345678"
        log.records[0] = (key, line + b"87654321")
        with pytest.raises(StateError):
            log.owner(2, Seal(KEY)).load(b"m")
