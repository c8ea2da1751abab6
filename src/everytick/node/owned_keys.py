"""What this node owns, by the store's handles: the engine writes it on its loop, the beat reads it in its thread."""

import asyncio
from collections.abc import Iterator, Mapping

from everytick.node.occurrence import OpenAttempt, OwnedOccurrence
from everytick.stores.base import Claim, ClaimKey


class OwnedKeys:
    """The occurrences of one engine, and the keys that the node's beat has to name.

    `lingering` are no longer this node's, and a body of them has not ended. One that is claimed
    anew meanwhile waits `behind` it. `latest` is the attempt that began last.
    """

    def __init__(self) -> None:
        self._occurrences: dict[int, OwnedOccurrence] = {}
        self._lingering: dict[int, OwnedOccurrence] = {}
        self._behind: dict[int, OwnedOccurrence] = {}
        self._unwritable: set[ClaimKey] = set()
        self._handed_over: Mapping[int, ClaimKey] = {}
        self._is_empty = asyncio.Event()
        self._is_empty.set()
        self.latest: OpenAttempt | None = None

    # --------------------------------------------------------------------------------------- asked by the beat's thread

    def named(self) -> set[ClaimKey]:
        """Return the keys that the beat names; may be called from another thread."""
        # Of copies: the engine goes on writing meanwhile.
        named = {occurrence.claim.key for occurrence in list(self._occurrences.values())}
        named.update(list(self._unwritable), list(self._handed_over.values()))
        return named

    @property
    def latest_job(self) -> str:
        """The job whose attempt began last: if the loop stands still, it is the one to look at."""
        latest = self.latest
        return "" if latest is None else latest.occurrence.claim.job.name

    # ---------------------------------------------------------------------------------------------- asked by the engine

    def __iter__(self) -> Iterator[OwnedOccurrence]:
        return iter(list(self._occurrences.values()))

    def get(self, handle: int) -> OwnedOccurrence | None:
        """Return the occurrence of this handle, whatever its fence."""
        return self._occurrences.get(handle)

    def find(self, key: ClaimKey) -> OwnedOccurrence | None:
        """Return the occurrence that is owned by this very claim: it may have been claimed anew since."""
        occurrence = self._occurrences.get(key.handle)
        return occurrence if occurrence is not None and occurrence.claim.key == key else None

    def knows(self, key: ClaimKey) -> bool:
        """Whether the beat names this key."""
        return self.find(key) is not None or key in self._unwritable

    def add(self, occurrence: OwnedOccurrence) -> None:
        """Own the occurrence from now on."""
        if not self._occurrences:
            self._is_empty.clear()
        self._occurrences[occurrence.claim.handle] = occurrence

    def remove(self, occurrence: OwnedOccurrence) -> None:
        """Own the occurrence no more."""
        handle = occurrence.claim.handle
        if self._occurrences.get(handle) is occurrence:
            del self._occurrences[handle]
        if self._behind and self._behind.get(handle) is occurrence:
            del self._behind[handle]
        self._look_if_empty()

    async def emptied(self) -> None:
        """Return when nothing is owned and no body lingers."""
        await self._is_empty.wait()

    # ------------------------------------------------------------------------------------------ one handle, two claims

    def linger(self, occurrence: OwnedOccurrence) -> None:
        """Remember that bodies of this occurrence, which is no longer this node's, have not ended."""
        if occurrence.open:
            self._lingering[occurrence.claim.handle] = occurrence

    def has_to_wait(self, claim: Claim) -> bool:
        """Whether a body of an older claim of this occurrence has not ended (S2-007)."""
        return claim.handle in self._lingering

    def wait_behind(self, occurrence: OwnedOccurrence) -> None:
        """Let the occurrence begin once the body of its older claim has ended.

        It is not given back after 250 ms like one that waits for a slot: another node would begin it beside the older
        body (S2-007), and this node would only claim it again. It waits for the grace period at most: then the
        older body is left behind.
        """
        self._behind[occurrence.claim.handle] = occurrence

    def linger_no_more(self, occurrence: OwnedOccurrence) -> OwnedOccurrence | None:
        """Forget an occurrence whose last body has ended; return the newer claim that waited for that."""
        handle = occurrence.claim.handle
        if self._lingering.get(handle) is not occurrence:
            return None
        del self._lingering[handle]
        self._look_if_empty()
        return self._behind.pop(handle, None)

    def wait_no_more(self, handle: int) -> None:
        """Let the occurrence of this handle not wait for an older claim."""
        self._behind.pop(handle, None)

    def take_waiting(self) -> list[OwnedOccurrence]:
        """Return every occurrence that waits for an older claim, and let none wait any more."""
        waiting = list(self._behind.values())
        self._behind.clear()
        return waiting

    # ------------------------------------------------------------------------------------- keys of what is not run here

    def give_up(self, key: ClaimKey) -> None:
        """Name the key until the store says that it is gone: else the beat would hand the occurrence over again."""
        self._unwritable.add(key)

    def forget(self, key: ClaimKey) -> None:
        """Name no longer a key that was given up: it is settled."""
        self._unwritable.discard(key)

    def name_too(self, keys: Mapping[int, ClaimKey]) -> None:
        """Name the keys in this mapping too, as it is at each beat: another engine of this node runs them."""
        self._handed_over = keys

    def _look_if_empty(self) -> None:
        if not self._occurrences and not self._lingering:
            self._is_empty.set()
