"""Operations over HTTP, each with the name and the arguments that it has in an application.

`by` is taken and not sent: the service signs what is done with the name that the token or the session proves.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from everytick.answers import fleet, runs_to_come
from everytick.answers.wire import plain
from everytick.client.handles import RemoteBackfill, RemoteHandle
from everytick.client.questions import RemoteQuestions, _client, length_text, time_text
from everytick.domain.backfills import RATE
from everytick.domain.config import UNSET

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everytick.answers.values import Preview
    from everytick.client.service_calls import ServiceCalls
    from everytick.domain.changes import Change
    from everytick.domain.keywords import OverlapWord
    from everytick.domain.limits import Rate
    from everytick.domain.proposals import Proposal
    from everytick.domain.schedule import Schedule
    from everytick.domain.snapshots import MissedWord


class RemoteOperations(RemoteQuestions):
    """Operations. Those that are safe to repeat are made again when the answer was lost."""

    _asking: ServiceCalls

    # ------------------------------------------------------------------------------------------------------- requests

    async def trigger(
        self,
        name: str,
        payload: object = UNSET,
        *,
        at: datetime | str | None = None,
        after: timedelta | str | None = None,
        key: str | None = None,
        overlap: OverlapWord | None = None,
        reason: str = "",
        by: str | None = None,
    ) -> RemoteHandle:
        """Ask for an occurrence now and return its handle; the schedule is not moved.

        Without a `key` it gets one of its own, so that a lost answer is asked for again and nothing runs twice.
        """
        times = {"at": time_text(at), "after": length_text(after)}
        body = {**times, "key": key or uuid4().hex, "overlap": overlap, "reason": reason, **_payload(payload)}
        return await self._handle("/api/jobs/{}/trigger", name, body)

    async def replay(
        self,
        occurrence_id: str,
        *,
        reason: str = "",
        from_task: str | None = None,
        key: str | None = None,
        overlap: OverlapWord | None = None,
        by: str | None = None,
    ) -> RemoteHandle:
        """Ask for a new occurrence that does again what an ended one did, and return its handle."""
        body = {"reason": reason, "from_task": from_task, "key": key or uuid4().hex, "overlap": overlap}
        return await self._handle("/api/occurrences/{}/replay", occurrence_id, body)

    async def add(
        self,
        name: str,
        at: datetime | str,
        payload: object = UNSET,
        *,
        overlap: OverlapWord | None = None,
        reason: str = "",
        by: str | None = None,
    ) -> RemoteHandle:
        """Add one single run at a time to come that the schedule does not name, and return its handle."""
        body = {"at": time_text(at), "overlap": overlap, "reason": reason, **_payload(payload)}
        return await self._handle("/api/jobs/{}/add", name, body)

    async def _handle(self, path: str, name: str, body: Mapping[str, Any]) -> RemoteHandle:
        # Each of these has a key, so that a second one is the same as the first.
        asked = await self._asking.change("POST", path, name, body=body, again=True)
        return RemoteHandle(_client(self), asked["id"])

    async def cancel(self, occurrence_id: str, *, reason: str = "", by: str | None = None) -> bool:
        """End an occurrence that no node has claimed, or ask its node to stop. Return whether it was still active.

        The id of a backfill ends that.
        """
        if occurrence_id.startswith("backfill_"):
            return await self.steer_backfill(occurrence_id, "cancel")
        return await self._changed("/api/occurrences/{}/cancel", occurrence_id, {"reason": reason})

    # ------------------------------------------------------------------------------------------------------ schedules

    async def pause(
        self,
        name: str,
        *,
        until: datetime | str | None = None,
        reason: str = "",
        missed: MissedWord = "skip",
        by: str | None = None,
    ) -> None:
        """Hold the schedule from now on. `missed` says what becomes of its instants."""
        await self._told("pause", name, {"until": time_text(until), "reason": reason, "missed": missed})

    async def resume(
        self, name: str, *, missed: MissedWord | None = None, confirmed: bool = False, by: str | None = None
    ) -> bool:
        """End a pause now. Return whether there was one."""
        return await self._changed("/api/jobs/{}/resume", name, {"missed": missed, "confirm": confirmed})

    async def reschedule(self, name: str, at: datetime | str, *, by: str | None = None) -> None:
        """Set the next run; the instants before it give way, those after it stay."""
        await self._told("reschedule", name, {"at": time_text(at)})

    async def rewind(self, name: str, *, by: str | None = None) -> bool:
        """Let a job go on now that was decided ahead while a clock was wrong; return whether it lay ahead."""
        return await self._changed("/api/jobs/{}/rewind", name, {})

    async def skip(self, name: str, at: datetime | str, *, reason: str = "", by: str | None = None) -> None:
        """Skip one single future instant of the schedule; `undo` takes that back."""
        await self._told("skip", name, {"at": time_text(at), "reason": reason})

    async def move(
        self, name: str, at: datetime | str, to: datetime | str, *, reason: str = "", by: str | None = None
    ) -> None:
        """Let one single future instant run at another time."""
        await self._told("move", name, {"at": time_text(at), "to": time_text(to), "reason": reason})

    async def amend(
        self, name: str, at: datetime | str, *, reason: str = "", by: str | None = None, **policies: Any
    ) -> None:
        """Let one single future instant run with a payload or other policies of its own; `undo` takes that back."""
        payload = policies.pop("payload", UNSET)
        body = {"at": time_text(at), "reason": reason, "policies": plain(policies), **_payload(payload)}
        await self._told("amend", name, body)

    async def undo(self, name: str, at: datetime | str, *, reason: str = "", by: str | None = None) -> tuple[str, ...]:
        """Take back what was said of one time to come, and return that: skip, move, amend, reschedule, add."""
        body = {"at": time_text(at), "reason": reason}
        return tuple((await self._asking.change("POST", "/api/jobs/{}/undo", name, body=body))["undone"])

    async def _told(self, verb: str, name: str, body: Mapping[str, Any]) -> None:
        await self._asking.change("POST", f"/api/jobs/{{}}/{verb}", name, body=body)

    async def _changed(self, path: str, name: str, body: Mapping[str, Any]) -> bool:
        return bool((await self._asking.change("POST", path, name, body=body))["changed"])

    # ------------------------------------------------------------------------------------------------------ backfills

    async def backfill(
        self,
        name: str,
        after: datetime | str,
        through: datetime | str,
        *,
        again: bool = False,
        overlap: Literal["queue", "allow"] | None = None,
        as_of: Literal["then", "now"] = "then",
        rate: int = RATE,
        newest_first: bool = False,
        dry_run: bool = False,
        approve: bool = True,
        confirmed: bool = False,
        reason: str = "",
        key: str | None = None,
        by: str | None = None,
    ) -> RemoteBackfill:
        """Ask for the past instants in `(after, through]` and return a handle. With `approve=False` it is planned."""
        options = {"again": again, "overlap": overlap, "as_of": as_of, "rate": rate, "newest_first": newest_first}
        told = {"dry_run": dry_run, "approve": approve, "confirm": confirmed, "reason": reason}
        body = {"after": time_text(after), "through": time_text(through), **options, **told}
        body["key"] = key or uuid4().hex
        backfill = await self._asking.change("POST", "/api/jobs/{}/backfills", name, body=body, again=True)
        instants = [datetime.fromisoformat(instant) for instant in backfill["instants"]]
        return RemoteBackfill(_client(self), backfill["id"], instants, backfill["more"])

    async def find_backfill(self, id: str, *, by: str | None = None) -> RemoteBackfill:
        """Return the handle of the backfill that has this id."""
        await self.read_backfill(id)
        return RemoteBackfill(_client(self), id)

    async def steer_backfill(self, id: str, verb: str) -> bool:
        """Approve, pause, resume or cancel a backfill. Return if it changed."""
        return await self._changed(f"/api/backfills/{{}}/{verb}", id, {})

    # ---------------------------------------------------------------------------------------------------- definitions

    async def create(self, name: str, definition: Mapping[str, Any], *, confirmed: bool = False) -> int:
        """Make a new job, written as in a job file, and return its version."""
        body = {"name": name, "definition": definition, "confirm": confirmed}
        return int((await self._asking.change("POST", "/api/jobs", body=body))["version"])

    async def apply(
        self,
        document: Mapping[str, Any] | str,
        *,
        owner: str = "api",
        prune: bool = False,
        policy: str | None = None,
        plan: str | None = None,
        confirmed: bool = False,
        by: str | None = None,
    ) -> list[Change]:
        """Store a document of jobs, given as in a job file or as its YAML text: all of it, or nothing."""
        told = await self._applied(_form(document), owner, prune, policy, dry_run=False, plan=plan, confirm=confirmed)
        return [runs_to_come.change_of(change) for change in told["changes"]]

    async def preview(
        self,
        document: Mapping[str, Any] | str,
        *,
        owner: str = "api",
        prune: bool = False,
        policy: str | None = None,
    ) -> Preview:
        """Return what `apply` of this document would change, and which runs to come; nothing is stored."""
        return runs_to_come.preview_of(await self._applied(_form(document), owner, prune, policy, dry_run=True))

    async def apply_files(
        self,
        files: Mapping[str, str],
        *,
        beside: Mapping[str, str] | None = None,
        owner: str = "file",
        prune: bool = False,
        policy: str | None = None,
        plan: str | None = None,
        confirmed: bool = False,
    ) -> list[Change]:
        """Store job files, given as texts by their names: all of them, or nothing.

        `beside` has the texts of files that these name under `use` and `ics`.
        """
        given = {"files": files, "beside": beside or {}}
        told = await self._applied(given, owner, prune, policy, dry_run=False, plan=plan, confirm=confirmed)
        return [runs_to_come.change_of(change) for change in told["changes"]]

    async def preview_files(
        self,
        files: Mapping[str, str],
        *,
        beside: Mapping[str, str] | None = None,
        owner: str = "file",
        prune: bool = False,
        policy: str | None = None,
    ) -> Preview:
        """Return what `apply_files` would change, or why it would be refused; nothing is stored."""
        given = {"files": files, "beside": beside or {}}
        return runs_to_come.preview_of(await self._applied(given, owner, prune, policy, dry_run=True))

    async def _applied(self, given: Mapping[str, Any], owner: str, prune: bool, policy: str | None, **more: Any) -> Any:
        body = {**given, "owner": owner, "prune": prune, "policy": policy, **more}
        return await self._asking.change("POST", "/api/apply", body=body)

    async def update(
        self,
        name: str,
        schedule: str | None = None,
        *,
        policy: str | None = None,
        expected_version: int | None = None,
        plan: str | None = None,
        detach: bool = False,
        confirmed: bool = False,
        by: str | None = None,
        **policies: Any,
    ) -> int:
        """Change the schedule or single policies of a stored job and return its version then."""
        more = {"expected_version": expected_version, "plan": plan, "confirm": confirmed}
        return int((await self._updated(name, schedule, policy, detach, policies, **more))["version"])

    async def preview_update(
        self,
        name: str,
        schedule: str | None = None,
        *,
        policy: str | None = None,
        detach: bool = False,
        **policies: Any,
    ) -> Preview:
        """Return what `update` with these arguments would change, and which runs to come; nothing is stored."""
        return runs_to_come.preview_of(await self._updated(name, schedule, policy, detach, policies, dry_run=True))

    async def _updated(
        self,
        name: str,
        schedule: str | None,
        policy: str | None,
        detach: bool,
        policies: Mapping[str, Any],
        **more: Any,
    ) -> Any:
        unset = [key for key, value in policies.items() if value is UNSET]
        given = {key: plain(value) for key, value in policies.items() if value is not UNSET}
        rule = None if schedule is None else str(schedule)
        body = {"schedule": rule, "policies": given, "unset": unset, "policy": policy, "detach": detach, **more}
        return await self._asking.change("PATCH", "/api/jobs/{}", name, body=body)

    async def rollback(
        self,
        name: str,
        version: int,
        *,
        policy: str | None = None,
        expected_version: int | None = None,
        detach: bool = False,
        confirmed: bool = False,
        by: str | None = None,
    ) -> int:
        """Make an old version the newest one again, as a new version equal to it; return its number."""
        body = {"version": version, "policy": policy, "expected_version": expected_version}
        body |= {"detach": detach, "confirm": confirmed}
        return int((await self._asking.change("POST", "/api/jobs/{}/rollback", name, body=body))["version"])

    async def end_rollout(self, name: str, *, keep: bool, confirmed: bool = False, by: str | None = None) -> int:
        """End the rollout of a job by hand and return the version that is in force then."""
        body = {"keep": keep, "confirm": confirmed}
        return int((await self._asking.change("POST", "/api/jobs/{}/rollout/end", name, body=body))["version"])

    async def rename(
        self,
        old: str,
        new: str,
        *,
        expected_version: int | None = None,
        detach: bool = False,
        confirmed: bool = False,
        by: str | None = None,
    ) -> None:
        """Give the job another name; its id, watermark and history stay."""
        body = {"to": new, "expected_version": expected_version, "detach": detach, "confirm": confirmed}
        await self._told("rename", old, body)

    async def remove(
        self,
        name: str,
        *,
        purge: bool = False,
        expected_version: int | None = None,
        confirmed: bool = False,
        by: str | None = None,
    ) -> None:
        """Take the job out of service; with `purge` the job and its history are deleted."""
        flags = {"purge": "true" if purge else None, "confirm": "true" if confirmed else None}
        query = {**flags, "expected_version": expected_version}
        await self._asking.change("DELETE", "/api/jobs/{}", name, query=query)

    async def enable(self, name: str, *, confirmed: bool = False, by: str | None = None) -> bool:
        """Let a disabled job run again, from its next instant on. Return whether anything changed."""
        return await self._changed("/api/jobs/{}/enable", name, {"confirm": confirmed})

    async def disable(self, name: str, *, confirmed: bool = False, by: str | None = None) -> bool:
        """Disable the job: no scheduled runs and no triggers until it is enabled. Return whether anything changed."""
        return await self._changed("/api/jobs/{}/disable", name, {"confirm": confirmed})

    # -------------------------------------------------------------------------------------------- limits, proposals

    async def set_limit(
        self,
        reach: str,
        *,
        most: int | None = None,
        rate: str | Rate | None = None,
        burst_allowed: bool = False,
        reason: str = "",
        by: str | None = None,
    ) -> None:
        """Let at most `most` occurrences of the reach run at once, and start at the rate, such as `"60/1m"`."""
        body = {"most": most, "rate": _rate(rate), "burst": burst_allowed, "reason": reason}
        await self._asking.change("PUT", "/api/limits/{}", reach, body=body, again=True)

    async def remove_limit(self, reach: str, *, reason: str = "", by: str | None = None) -> bool:
        """Take the limit of the reach away. Return whether there was one."""
        told = await self._asking.change("DELETE", "/api/limits/{}", reach, query={"reason": reason or None})
        return bool(told["changed"])

    async def brake(
        self,
        reach: str = "all",
        *,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        begins: Schedule | str | None = None,
        ends: Schedule | str | None = None,
        timezone: str = "UTC",
        reason: str = "",
        by: str | None = None,
    ) -> None:
        """Let nothing of the reach start, from now on or from `since` on, until `until` or until `release`.

        With `begins` and `ends` it is a freeze window that comes again.
        """
        window = {"begins": _rule(begins), "ends": _rule(ends), "timezone": timezone}
        body = {"since": time_text(since), "until": time_text(until), "reason": reason, **window}
        await self._asking.change("POST", "/api/limits/{}/brake", reach, body=body)

    async def release(
        self,
        reach: str = "all",
        *,
        rate: str | Rate | None = None,
        at_once: bool = False,
        reason: str = "",
        by: str | None = None,
    ) -> bool:
        """End the brakes of the reach. Return whether there was one."""
        return await self._changed(
            "/api/limits/{}/release", reach, {"rate": _rate(rate), "at_once": at_once, "reason": reason}
        )

    async def approve(self, proposal_id: str, *, by: str | None = None) -> Proposal:
        """Carry out what another person has proposed, and return it."""
        return fleet.proposal_of(await self._asking.change("POST", "/api/proposals/{}/approve", proposal_id, body={}))

    async def reject(self, proposal_id: str, *, by: str | None = None) -> Proposal:
        """Drop a proposal and return it; the one who proposed it may do so too."""
        return fleet.proposal_of(await self._asking.change("POST", "/api/proposals/{}/reject", proposal_id, body={}))


def _form(document: Mapping[str, Any] | str) -> dict[str, Any]:
    return {"text": document} if isinstance(document, str) else {"document": document}


def _payload(given: object) -> dict[str, object]:
    return {} if given is UNSET or given is None else {"payload": given}


def _rule(given: Schedule | str | None) -> str | None:
    return None if given is None else str(given)


def _rate(given: str | Rate | None) -> str | None:
    return None if given is None else str(given)
