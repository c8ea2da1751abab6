"""Job files: preview and store what they say, all of it or nothing."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everytick.app.stored_jobs import StoredJobs, update_policy_of
from everytick.errors import NotOwned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everytick.answers.values import Preview
    from everytick.domain.changes import Change
    from everytick.domain.policies import UpdatePolicy
    from everytick.sources.job_files import FileJob
    from everytick.sources.syncing import FilesDraft


class FileRequests(StoredJobs):
    """What job files ask for. Their jobs belong to one owner, and the jobs of other owners are left alone."""

    async def preview_files(
        self,
        jobs: Mapping[str, FileJob],
        *,
        owner: str,
        prune: bool = False,
        policy: str | UpdatePolicy | None = None,
    ) -> Preview:
        """Return what `apply_files` of these jobs would change, or why it would be refused; nothing is stored."""
        from everytick.app.previews import preview
        from everytick.sources.syncing import draft_of

        store = await self._opened()
        draft = await draft_of(store, jobs, owner=owner, prune=prune)
        seen = await preview(store, draft.jobs, update_policy_of(policy))
        return replace(seen, refusals=tuple(map(str, draft.mistakes)))

    async def apply_files(
        self,
        jobs: Mapping[str, FileJob],
        *,
        owner: str,
        prune: bool = False,
        policy: str | UpdatePolicy | None = None,
        plan: str | None = None,
        confirmed: bool = False,
        by: str | None = None,
    ) -> list[Change]:
        """Store the jobs of files in one transaction and return what that changed.

        With `prune`, jobs of the owner that are not among them are removed. Raise NotOwned if another owner has one of
        these names. `policy`, `plan` and `confirmed` are those of `apply`.
        """
        from everytick.app.previews import refuse_moved
        from everytick.sources.syncing import apply_jobs

        store, who, when = await self._opened(), self._by(by), update_policy_of(policy)

        async def agree(draft: FilesDraft) -> None:
            if plan is not None:
                await refuse_moved(store, plan, draft.jobs, when)
            await self._agree_to_drafts(store, draft.jobs, draft.edits(), confirmed=confirmed, by=who)

        synced = await apply_jobs(store, jobs, owner=owner, prune=prune, by=who, policy=when, agree=agree)
        if synced.mistakes:
            raise NotOwned(tuple(map(str, synced.mistakes)))
        return list(synced.changes)
