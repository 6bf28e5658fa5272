"""Owners of a partition's records, told apart from foreign records.

Foreign records are those that somebody else has put under the owners' names. With a key an owner is who has signed a
head. Without one nobody can be told from an owner, but an epoch can be no owner's that lies further above all others
than rebalances could have led: it would end the counting of epochs.
"""

from __future__ import annotations

import logging
from collections import defaultdict

from ..errors import DamagedStateError, StateError
from .records import OwnerRecords, StateRecords, head_key
from .seal import Seal

logger = logging.getLogger(__name__)

LEAP = 10**12
"""Longest step between two epochs that are not signed: the sum of the generations of a million rebalances."""


class Owners:
    """Owners of a partition that count, and foreign records under our names.

    Parameters
    ----------
    records
        What the changelog holds; looked at once.

    Attributes
    ----------
    last
        Epoch of the last owner; 0 for none.
    """

    def __init__(self, records: StateRecords, partition: int, seal: Seal) -> None:
        self._seal = seal
        self._foreign: dict[bytes, set[int]] = defaultdict(set)
        self._is_any_signed = False
        signed: set[int] = {0}
        claimed: list[tuple[int, bytes]] = []
        headless: list[tuple[int, bytes, OwnerRecords]] = []
        n_heads = 0
        for name, epoch, written in records.all_of(partition):
            if written.head is None:
                headless.append((epoch, name, written))  # chunks of an owner who fell before the head, or of nobody
                if seal.is_signing:
                    continue
            trust = seal.trusts(head_key(name, epoch), written.head or b"")
            if trust is False:
                self._foreign[name].add(epoch)
                n_heads += 1
            elif trust:
                signed.add(epoch)
            else:
                claimed.append((epoch, name))
        self._is_any_signed = len(signed) > 1
        self.last = max(signed)
        for epoch, name in sorted(claimed):
            if epoch <= self.last + LEAP:
                self.last = max(self.last, epoch)
            else:
                self._foreign[name].add(epoch)
                n_heads += records.epochs(partition, name)[epoch].head is not None
        told = set(self._foreign)
        n_chunks = records.unnoted(partition)
        for epoch, name, written in headless:
            # What an owner has left who fell while it stored is little, and of an epoch that an owner can have.
            if n := len(written.chunks) if epoch > self.last + LEAP else written.passed_over:
                n_chunks += n
                told.add(name)
            if epoch > self.last:
                self._foreign[name].add(epoch)
        if n_heads or n_chunks:
            records.n_foreign += n_heads + n_chunks
            if self._is_any_signed or not seal.is_signing:  # otherwise what is read first says what is wrong
                self._say(partition, n_heads, n_chunks, told)

    def foreign(self, name: bytes) -> set[int]:
        """Return the epochs under the name that are no owner's."""
        return self._foreign.get(name, set())

    def forget(self, name: bytes) -> None:
        """Note that the foreign records under the name have been deleted."""
        self._foreign.pop(name, None)

    def check_foreign(self, name: bytes, epoch: int, head: bytes) -> None:
        """Raise if all heads of a name are foreign, by the newest of them.

        The newest head is given. Without a key nothing is raised.

        Raises
        ------
        StateError
            No head of the partition is signed with our key: the key is another one.
        DamagedStateError
            Others are.
        """
        if not self._seal.is_signing:
            return
        try:
            self._seal.read(head_key(name, epoch), head)
        except DamagedStateError:
            raise
        except StateError as error:
            if self._is_any_signed:
                raise DamagedStateError(f"{error}. Other states of the partition are signed with state.key") from None
            raise error from None

    def _say(self, partition: int, n_heads: int, n_chunks: int, told: set[bytes]) -> None:
        n, names = n_heads + n_chunks, sorted(text_of(name) for name in told)
        shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
        unsigned = "not signed with state.key" if self._seal.is_signing else "of epochs that no owner can have"
        why = [unsigned] if n_heads else []
        if n_chunks:
            why.append(f"{n_chunks} of them chunks without a head" if n_heads else "chunks without a head")
        logger.warning(
            "partition %d: %d record%s of the state's changelog, under %s, %s of no worker of this group (%s): passed "
            "over, and deleted when the name is stored the next time. Who can write to the changelog?",
            partition,
            n,
            "" if n == 1 else "s",
            shown or "names of ours",
            "is" if n == 1 else "are",
            "; ".join(why),
        )


_SHOWN = 5  # names in a line of the log


def text_of(name: bytes) -> str:
    """Return a name of the state table as a message prints it."""
    return name.decode("utf-8", "backslashreplace").removeprefix("\0")
