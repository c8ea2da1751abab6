"""Running: the node of an application, in the foreground, in the background or inside another program's loop."""

from __future__ import annotations

import os
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, Self

from everytick.app.outputs import log_folder
from everytick.app.reloaders import reloader_parent
from everytick.app.store_access import StoreAccess, applications, originals, running_loop
from everytick.domain.durations import duration
from everytick.domain.texts import ALREADY_RUNNING
from everytick.errors import AlreadyRunning, EverytickError, InvalidSetting, MissingExtra, StoreUnavailable, shown

if TYPE_CHECKING:
    from asyncio import Task
    from collections.abc import AsyncIterator, Iterable, Iterator
    from datetime import timedelta
    from pathlib import Path
    from types import TracebackType

    from everytick.app.background import Background
    from everytick.app.definition import Definition
    from everytick.app.serving import Listening
    from everytick.app.watched_folder import JobsFolder
    from everytick.domain.changes import Change
    from everytick.domain.job import Job
    from everytick.errors import TooManyEditions
    from everytick.node.definers import DefinedNames
    from everytick.node.events import Listeners
    from everytick.node.hooks import HookTable
    from everytick.node.node import Node
    from everytick.node.settings import NodeSettings
    from everytick.node.stopping import StopMode
    from everytick.runners.catalogue import Catalogue
    from everytick.runners.mail import MailServer
    from everytick.stores.addresses import AnyStore


class Closable(Protocol):
    """What runs beside the node and uses its store. `url` is where its first page is."""

    url: str

    async def close(self) -> None:
        """End it."""
        ...


class Lifecycle(StoreAccess):
    """Starts and stops the node; one application has one node in a process."""

    settings: NodeSettings
    jobs_folder: Path | None = None
    jobs_owner: str
    _listeners: Listeners
    _node: Node | None = None
    _folder: JobsFolder | None = None
    _starting: Task[None] | None = None
    _stopping: Task[None] | None = None
    _watching: Task[None] | None = None
    _is_teaching = False
    _background: Background | None = None
    _defined: DefinedNames | None = None
    _catalogue: Catalogue | None = None
    _typed: Task[None] | None = None
    _service: Closable | None = None

    if TYPE_CHECKING:

        async def serve_beside(self, listening: Listening) -> None:
            """Serve the application beside its node; see `Serving`."""

        async def _sync(self, left: frozenset[str]) -> list[Change]:
            """Store every definition but those that are left as they are."""

        async def _sync_skipping_refused(self) -> Mapping[str, TooManyEditions]:
            """Store the definitions of this application; see `StoredJobs`."""

    @property
    def node(self) -> Node | None:
        """The node, while it runs."""
        return self._node

    async def start(self) -> None:
        """Open the store, store this application's definitions and files, and begin to plan and run.

        A stop that comes before it is done ends it with a RuntimeError. In the parent process of a reloader
        (`flask run --debug`, `manage.py runserver`) nothing is started: the process that serves has the node.
        """
        import asyncio

        _refuse_in_child()
        if reloader_parent.starts_no_node():
            return
        if self._is_running:
            raise AlreadyRunning(ALREADY_RUNNING)
        self._node_stayed_in = None
        self._starting = asyncio.create_task(self._begin())
        try:
            await self._starting
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            raise RuntimeError("the application was stopped before it had started") from None
        finally:
            self._starting = None

    async def stop(
        self,
        mode: StopMode = "cancel",
        timeout: timedelta | str | None = None,  # noqa: ASYNC109 - a duration of ours
    ) -> None:
        """Stop planning and claiming, then the tasks that run, and close the store. A second stop does nothing.

        `cancel` tells tasks to stop and waits the grace period, `drain` waits for their end first.
        `timeout` takes the place of the grace period for this call.
        A stop during a stop waits for the same end, and `cancel` hastens a drain.
        """
        import asyncio

        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end(mode, None if timeout is None else duration(timeout)))
        elif mode == "cancel" and self._node is not None:
            self._node.hasten()
        await asyncio.shield(self._stopping)

    async def _begin(self) -> None:
        import asyncio

        _refuse_unsendable(self._definitions.values(), self.settings)
        _refuse_unhandable(self._definitions.values(), self.settings)
        store = await self._opened_here()
        refused = await self._sync_skipping_refused()
        if self.jobs_folder is not None:
            from everytick.app.watched_folder import JobsFolder

            self._folder = JobsFolder(store, self.jobs_folder, self.jobs_owner, self._defined_names())
            await self._folder.read()
            _warn_of_unsendable(self._folder.jobs, self.settings)
        node = self._made_node(store)
        if self._folder is not None:
            assert self._catalogue is not None, "a node is made with a catalogue"
            self._folder.warn_of_unknown(self._catalogue.why)
        await node.start()
        self._node = node
        # Jobs may have been defined while the node started.
        self._teach(node)
        self._watching = asyncio.create_task(self._end_once_gone(node))
        if not self._definitions and self.jobs_folder is None:
            self._warn_of_no_jobs()
        if refused:
            await self._store_refused(refused)
        if self._folder is not None:
            await self._folder.watch(node)

    def _warn_of_no_jobs(self) -> None:
        """Log that no job is defined. Another application of this process that has jobs tells why: a second import."""
        import logging

        twins = [app for app in applications() if app is not self and app.name == self.name and app._definitions]
        hint = "is every module that defines jobs imported?"
        if twins:
            hint = (
                f"its module was imported twice, and the other one has {len(twins[0]._definitions)}: "
                "make the Everytick in a module of its own, or start it with everytick run"
            )
        logging.getLogger("everytick").warning("application '%s' defines no jobs: %s", self.name, hint)

    async def _end_once_gone(self, node: Node) -> None:
        """Stop once the store is gone for good: this node could write nothing any more."""
        import asyncio

        await node.gone.wait()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self._end("cancel"))

    async def _store_refused(self, refused: Mapping[str, TooManyEditions]) -> None:
        """Store definitions that had too many waiting versions. The node has planned since, except paused jobs."""
        import logging

        with suppress(StoreUnavailable):
            refused = await self._sync_skipping_refused()
        for name, error in refused.items():
            text = "job '%s' cannot be stored as this program defines it: %s; it goes on as it is stored"
            logging.getLogger("everytick.app").error(text, name, error)

    async def _end(self, mode: StopMode, grace: timedelta | None = None) -> None:
        import asyncio

        if self._watching is not None:
            self._watching.cancel()
            self._watching = None
        try:
            if self._starting is not None:
                self._starting.cancel()
                await asyncio.wait([self._starting])
            if self._folder is not None:
                await self._folder.close()
            if self._node is not None:
                await self._node.stop(mode, grace)
            if self._service is not None:
                # Last of all: while running tasks are waited for, people look at them.
                await self._service.close()
        finally:
            self._node = self._folder = self._defined = self._service = None
            try:
                await self.close()
            finally:
                self._stopping = None

    def _defined_names(self) -> DefinedNames:
        """Return the names of the jobs that this process defines, as the store knows them."""
        from everytick.node.definers import DefinedNames

        if self._defined is None:
            self._defined = DefinedNames()
        return self._defined

    def _run_typed(self, job_id: str) -> None:
        """Let a node that runs here take up a job that was just typed into a notebook, or typed again."""
        catalogue, opened = self._catalogue, self._opened_store
        if self._node is None or catalogue is None or opened is None:
            return

        async def taken() -> None:
            catalogue.relearn(job_id)
            await self._sync(
                frozenset(definition.name for definition in self._definitions.values() if not definition.job.tasks)
            )

        if opened.loop is running_loop():
            self._typed = opened.loop.create_task(taken())
        else:
            self.wait(taken())

    def _learned(self) -> None:
        node, opened = self._node, self._opened_store
        if node is not None and opened is not None and not self._is_teaching and opened.loop.is_running():
            self._is_teaching = True
            opened.loop.call_soon_threadsafe(self._teach, node)

    def _teach(self, node: Node) -> None:
        self._is_teaching = False
        node.learn(self._hook_table())

    def _hook_table(self) -> HookTable:
        from everytick.node.hooks import hook_table

        # Iterate over a copy: another thread may be defining a job.
        return hook_table({id_: definition.hooks for id_, definition in tuple(self._definitions.items())})

    def _forked(self) -> None:
        super()._forked()
        if self._node is not None:
            self._node_stayed_in = os.getppid()
        originals.append((self._node, self._folder, self._background))
        self._node = self._folder = self._background = self._starting = self._stopping = self._defined = None
        self._watching = None

    @property
    def _is_running(self) -> bool:
        return self._node is not None or self._starting is not None

    def run(self, *, drain: bool = False, web: bool | str = False) -> None:
        """Run until Ctrl-C or SIGTERM: the first stops cleanly, a second leaves at once.

        A closed terminal (SIGHUP) stops cleanly too, except under nohup.

        With `drain` a clean stop lets everything that runs finish first. With `web` the dashboard and the HTTP API
        are served beside the node: on 127.0.0.1:8484, or where a text such as `"127.0.0.1:9000"` says. A store that
        cannot be used ends the process: what was asked, why it failed and what to do go to standard error, and an
        exit code to scripts.
        """
        from everytick.exits import Exit, code_of

        try:
            # A fifth of a second, in which no handler of ours takes the signal yet.
            import everytick.app.foreground  # noqa: F401
        except KeyboardInterrupt:
            raise SystemExit(int(Exit.INTERRUPTED)) from None
        listening = None
        if web:
            from everytick.app.serving import listening_of

            listening = listening_of(web)
        try:
            self._run(drain, self._greet, listening)
        except AlreadyRunning:
            raise
        except EverytickError as error:
            sys.stderr.write(f"everytick: {error}\n")
            raise SystemExit(int(code_of(error))) from error

    def run_or_raise(self, *, drain: bool = False, web: Listening | None = None) -> None:
        """Run as `run` does without a line at the start, and raise the error that ends it."""
        self._run(drain, None, web)

    def _run(self, drain: bool, greet: Callable[[], Awaitable[None]] | None, listening: Listening | None) -> None:
        from everytick.app.foreground import run

        async def started() -> None:
            if greet is not None:
                await greet()
            if listening is not None:
                await self.serve_beside(listening)

        _refuse_in_child()
        if running_loop() is not None:
            raise RuntimeError(
                "run() needs an event loop of its own, and one runs here already, as in a notebook or a coroutine: "
                "call tick.start_background(), or write `async with tick:`"
            )
        if reloader_parent.starts_no_node():
            return
        if self._is_running or self._background is not None:
            raise AlreadyRunning(ALREADY_RUNNING)
        run(self, drain=drain, started=started)

    async def _greet(self) -> None:
        """Say in one line what runs here, on which store, and when the first job runs."""
        from everytick.app.console_lines import greeting, tell

        store = await self._opened()
        jobs = [definition.job for definition in tuple(self._definitions.values())]
        tell(greeting(jobs, self.jobs_folder, store.address, await store.now()))

    def start_background(self) -> None:
        """Run in a thread with its own event loop. Return once it runs. It stops when the process ends.

        In the process of a task it does nothing: there the module is only imported for its functions. The parent
        process of a reloader (`flask run --debug`, `manage.py runserver`) runs no node either.
        """
        from everytick.app.background import Background

        if _is_in_child() or reloader_parent.starts_no_node():
            return
        if self._is_running or self._background is not None:
            raise AlreadyRunning(ALREADY_RUNNING)
        if self._opened_store is not None and self._opened_store.loop is running_loop():
            raise RuntimeError(
                "start_background() would wait for this loop, which has opened the store: "
                "write `await tick.start()` here, or call start_background() before anything is asked"
            )
        self._background = Background(self)
        try:
            self._background.start()
        except BaseException:
            self._background = None
            raise
        reloader_parent.stop_before_reloading(self.stop_background)

    def stop_background(self, mode: StopMode = "cancel") -> None:
        """Stop what `start_background` began, and return once it has stopped; stopping twice is harmless."""
        background = self._background
        if background is not None:
            background.stop(mode)
            if self._background is background:
                self._background = None

    @asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncIterator[None]:
        """Run as long as a web application does: `FastAPI(lifespan=tick.lifespan)`.

        Any number of web workers may do so: each occurrence is claimed by one of them.
        """
        await self.start()
        try:
            yield
        finally:
            await self.stop()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def _made_node(self, store: AnyStore) -> Node:
        from everytick.node.node import Node
        from everytick.node.timed_store import timed
        from everytick.runners.catalogue import Catalogue

        settings = self.settings
        if settings.log_folder is None:
            settings = replace(settings, log_folder=log_folder(store))
        catalogue = self._catalogue = Catalogue(
            Live(self._definitions, lambda definition: definition.functions),
            threads=settings.threads,
            processes=settings.processes,
            grace=settings.grace_period,
            allow_calls=settings.allow_calls,
            allow_addresses=settings.allow_addresses,
            mail=_mail(settings),
            engines=_engines(settings),
        )
        hooks = self._hook_table()
        defined = self._defined_names()
        node = Node(
            timed(store, self._listeners.meter),
            catalogue,
            settings,
            hooks=hooks,
            listeners=self._listeners,
            application=self.name,
            defined=defined,
        )
        defined.belong_to(node.name)
        return node


def _engines(settings: NodeSettings) -> dict[str, tuple[str, ...]]:
    """Return where the engines are that this node hands work over to, by runner."""
    found = {"celery": (settings.celery, settings.celery_results), "dask": (settings.dask,), "ray": (settings.ray,)}
    return {name: tuple(filter(None, places)) for name, places in found.items() if places[0] is not None}


def _refuse_unsendable(definitions: Iterable[Definition], settings: NodeSettings) -> None:
    """Return if this node can send the e-mail that its own jobs want. The first failure is too late to say so."""
    for name in _unsendable((definition.job for definition in definitions), settings):
        reason = (
            f"is not set, and job '{shown(name)}' sends e-mail: set it to a server's address, such as "
            "smtp://user:password@mail.example.org, here or as EVERYTICK_SMTP"
        )
        raise InvalidSetting("smtp", None, reason)


def _refuse_unhandable(definitions: Iterable[Definition], settings: NodeSettings) -> None:
    """Return if this node can hand its own jobs over to the engines that their runners name."""
    from importlib.util import find_spec

    from everytick.domain.needs import ENGINES

    wanted = {
        task.settings.runner: definition.name
        for definition in definitions
        for task in definition.job.tasks
        if task.settings.runner in ENGINES
    }
    for runner, job in wanted.items():
        assert runner is not None, "only engines are wanted"
        if getattr(settings, runner) is None:
            reason = f"is not set, and job '{shown(job)}' has runner {runner}: set it, here or as EVERYTICK_"
            raise InvalidSetting(runner, None, reason + runner.upper())
        if find_spec("distributed" if runner == "dask" else runner) is None:
            raise MissingExtra(f"the runner {runner}", runner)


def _warn_of_unsendable(jobs: Iterable[Job], settings: NodeSettings) -> None:
    """Log which jobs of files want e-mail that this node cannot send; another node may be able to."""
    for name in _unsendable(jobs, settings):
        import logging

        text = "job '%s' sends e-mail and this node has no smtp setting: its e-mail waits for a node that has one"
        logging.getLogger("everytick.app").warning(text, name)


def _unsendable(jobs: Iterable[Job], settings: NodeSettings) -> Iterator[str]:
    """Give the names of the jobs that send e-mail, if this node has no server that takes it."""
    from everytick.deciding.notices import receivers_of
    from everytick.domain.notices import NoticeKind

    for job in jobs if settings.smtp is None else ():
        notices = (receivers_of(job, kind) for kind in NoticeKind)
        texts = (text for notice in notices if notice is not None for text in notice.receivers)
        if any(text.startswith('{"email":') for text in texts):
            yield job.name


def _mail(settings: NodeSettings) -> MailServer | None:
    if settings.smtp is None:
        return None
    from everytick.runners.mail import mail_server

    return mail_server(settings.smtp, settings.smtp_sender)


class Live(Mapping[str, Mapping[str, Callable[..., Any]]]):
    """One part of every definition, by job id. It includes jobs that are defined while the node runs."""

    def __init__(
        self, definitions: Mapping[str, Definition], part: Callable[[Definition], Mapping[str, Callable[..., Any]]]
    ) -> None:
        self._definitions, self._part = definitions, part

    def __getitem__(self, job_id: str) -> Mapping[str, Callable[..., Any]]:
        return self._part(self._definitions[job_id])

    def get(self, job_id: str, default: Any = None) -> Any:
        """Return the part of this job, or the default. No KeyError: it is called at every start and end."""
        definition = self._definitions.get(job_id)
        return default if definition is None else self._part(definition)

    def __iter__(self) -> Iterator[str]:
        # Iterate over a copy: another thread may be defining a job.
        return iter(tuple(self._definitions))

    def __len__(self) -> int:
        return len(self._definitions)

    def __bool__(self) -> bool:
        # An empty mapping may get jobs later: it must not count as missing.
        return True


def _is_in_child() -> bool:
    """Whether this is a process in which a node runs its tasks."""
    child = sys.modules.get("everytick.runners.child")
    return child is not None and child.is_serving


def _refuse_in_child() -> None:
    if _is_in_child():
        raise RuntimeError(
            "this is the process of a task, which imports the application for its functions and must not run it: "
            'put the call under `if __name__ == "__main__":`'
        )
