"""The guard: a small process that outlives the node for as long as it takes to end what the node began.

A node that is killed cannot end its commands, and a signal on the parent's death reaches
only the first process, not what that one started. The guard is told which process groups
exist; when the pipe from the node closes, for whatever reason, it kills those that are
left.
"""

import subprocess
from logging import getLogger

_log = getLogger("everytick.runners.guard")

# A shell needs a tenth of the memory of an interpreter. It is out of reach of the signals
# that a terminal or a service manager sends to the node.
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
    """Knows every process group that must not outlive this node."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._groups: set[int] = set()

    def watch(self, group: int) -> None:
        """Kill this group when the node is gone."""
        self._groups.add(group)
        self._tell(f"+ {group}\n")

    def release(self, group: int) -> None:
        """The group has ended, and its number may soon be another's."""
        if group in self._groups:
            self._groups.discard(group)
            self._tell(f"- {group}\n")

    def close(self) -> None:
        """End the guard; groups that are still watched are killed by it."""
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
            _log.exception("without a guard, processes of this node may outlive it if it is killed")

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
    """Let go of the pipe, upon which the guard does its last duty and ends."""
    assert process.stdin is not None, "the guard listens on its standard input"
    process.stdin.close()
    process.wait()
