"""The guard: a small process that outlives the node until it has killed the node's child processes.

A node that is killed cannot end its commands, and the signal on a parent's death reaches only the first process, not
those that it started. The node tells the guard which process groups exist. When the pipe from the node closes, the
guard kills those that are left.
"""

import subprocess
from logging import getLogger

_log = getLogger("everytick.runners.guard")

# A shell needs a tenth of the memory of a Python interpreter. It ignores the signals that a terminal or a service
# manager sends to the node.
_SCRIPT = """
trap '' INT TERM HUP QUIT
groups=' '
while read -r sign group; do
  case $sign in
    +) groups="$groups$group " ;;
    -) groups="${groups%% $group *} ${groups#* $group }" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class Guard:
    """Kills the process groups of this node when the node ends."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def watch(self, group: int) -> None:
        """Let the guard kill this group when the node is gone."""
        self._groups.add(group)
        self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """Stop watching a group that has ended: another group may get its number."""
        if group in self._groups:
            self._groups.discard(group)
            self._tell(f"- {group}\n")

    def close(self) -> None:
        """End the guard. It kills the groups that are still watched."""
        process, self._process = self._process, None
        self._groups.clear()
        if process is None:
            return
        _leave(process)

    def _tell(self, line: str) -> None:
        try:
            self._write(line)
        except OSError as error:
            if self._process is not None:
                _leave(self._process)
                self._process = None
            _log.warning("the guard of this node's processes was gone (%s): another one takes its place", error)
            self._begin_anew()

    def _begin_anew(self) -> None:
        try:
            self._write("".join(f"+ {group}\n" for group in self._groups))
        except OSError:
            _log.exception(
                "no guard can be started: if this node is killed, its processes run on; the next process tries again"
            )

    def _write(self, text: str) -> None:
        if self._process is None:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                bufsize=0,
                start_new_session=True,
                cwd="/",
            )
        assert self._process.stdin is not None, "the guard listens on its standard input"
        self._process.stdin.write(text.encode())


def _leave(process: "subprocess.Popen[bytes]") -> None:
    """Close the pipe, and wait until the guard has killed its groups and ended."""
    assert process.stdin is not None, "the guard listens on its standard input"
    process.stdin.close()
    process.wait()
