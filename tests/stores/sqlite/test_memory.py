"""What SQLite has freed does not stay with the process."""

import ctypes
import resource
from pathlib import Path

from everytick.stores.sqlite.writer import give_back

PIECE, PIECES = 4096, 10_000


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_what_was_freed_in_small_pieces_goes_back_to_the_system() -> None:
    """An idle node needs no more memory for having been busy. The C library must have `malloc_trim`."""
    libc = ctypes.CDLL(None)
    libc.malloc.restype, libc.malloc.argtypes = ctypes.c_void_p, [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    pieces = [libc.malloc(PIECE) for _ in range(PIECES)]
    for piece in pieces:
        ctypes.memset(piece, 1, PIECE)
    # The last one stays: what lies before it is not at the end of the heap, where the library would give it back.
    last = pieces.pop()
    for piece in pieces:
        libc.free(piece)
    before = resident()
    assert give_back()
    assert before - resident() > PIECE * PIECES // 2
    libc.free(last)
