"""Short ways to write files of jobs."""

import asyncio
from pathlib import Path

from everytick.node.definers import DefinedNames
from everytick.sources.files import Folder, SourceEvent
from everytick.sources.syncing import Synced, sync_loaded
from everytick.stores.addresses import AnyStore


class JobFolder:
    """A folder on disk, and the `Folder` that reads it."""

    def __init__(self, path: Path) -> None:
        path.mkdir()
        self.path, self.folder = path, Folder(path)

    def write(self, file: str, **jobs: str) -> None:
        """Let a file define these jobs, each hourly and with a command unless its words say otherwise."""
        lines = ["version: 1", "jobs:", *(f"  {name.replace('_', '-')}: {body(words)}" for name, words in jobs.items())]
        self.text(file, "\n".join(lines) if jobs else "version: 1\njobs: {}")

    def text(self, file: str, text: str) -> None:
        """Let a file say this; its folders come to exist."""
        path = self.path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def delete(self, file: str) -> None:
        (self.path / file).unlink()

    def rename(self, old: str, new: str) -> None:
        (self.path / old).rename(self.path / new)

    def load(self) -> list[tuple[str, str]]:
        """Read the folder and return what happened, by kind and name."""
        return [(str(event.kind), event.name) for event in self.events()]

    def events(self) -> list[SourceEvent]:
        return self.folder.load()

    def again(self) -> Folder:
        """The folder as a node sees it that has just been started."""
        self.folder = Folder(self.path)
        return self.folder

    @property
    def mistakes(self) -> list[str]:
        return [str(each).removeprefix(f"{self.path}/") for each in self.folder.mistakes]


def body(words: str) -> str:
    """The body of a job with these words."""
    schedule = "" if words.startswith("schedule:") else 'schedule: "0 * * * *", '
    return f"{{{schedule}command: work{', ' if words else ''}{words}}}".replace(
        ", command: work, schedule", ", schedule"
    )


async def sync_folder(store: AnyStore, folder: Folder, defined: DefinedNames | None = None) -> Synced:
    """Read the folder in a thread, as a node does, and store its jobs."""
    await asyncio.to_thread(folder.load)
    return await sync_loaded(store, folder, defined)
