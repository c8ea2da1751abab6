"""How proposals are stored: each as the payload of a disabled job of its own, which never runs.

So they need no table, and an approval is one transaction: it removes that job and makes the changes, or does nothing.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from everytick.domain.changes import Put, Remove, Rename, Tell
from everytick.domain.facts import Pause, Resume
from everytick.domain.ids import job_id
from everytick.domain.job import define_job
from everytick.domain.policies import update_policy
from everytick.domain.proposals import OWNER, Proposal
from everytick.domain.snapshots import Missed
from everytick.schedules.once import on_request
from everytick.stores.definitions import read_definition, write_definition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everytick.domain.changes import Edit
    from everytick.domain.job import Job


def proposal_job(proposal: Proposal) -> Job:
    """Return the job in which a proposal is stored."""
    data = {
        "what": proposal.what,
        "jobs": proposal.jobs,
        "by": proposal.by,
        "at": proposal.at.isoformat(),
        "expires_at": proposal.expires_at.isoformat(),
        "edits": [_written(edit) for edit in proposal.edits],
    }
    policies = {"payload": data, "enabled": False, "description": f"proposed by {proposal.by}: {proposal.what}"}
    return define_job(proposal.name, on_request(), policies=policies, owner=OWNER)


def read_proposal(job: Job) -> Proposal:
    """Return the proposal that this job holds."""
    assert job.settings.payload is not None, "a proposal is the payload of its job"
    data: Any = job.settings.payload.read()
    return Proposal(
        job.name.rpartition("-")[2],
        data["what"],
        tuple(data["jobs"]),
        data["by"],
        datetime.fromisoformat(data["at"]),
        datetime.fromisoformat(data["expires_at"]),
        tuple(_read(edit) for edit in data["edits"]),
    )


def _written(edit: Edit) -> dict[str, object]:
    match edit:
        case Put():
            policy = None if edit.policy is None else str(edit.policy)
            return {"put": json.loads(write_definition(edit.job)), "expected": edit.expected, "policy": policy}
        case Rename():
            return {"rename": edit.name, "to": edit.to, "expected": edit.expected}
        case Remove():
            after = edit.retire_after.total_seconds()
            return {"remove": edit.name, "retire_after": after, "expected": edit.expected}
        case Tell(fact=Pause() as fact):
            until = None if fact.until is None else fact.until.isoformat()
            told = {"until": until, "missed": str(fact.missed), "reason": fact.reason, "by": fact.by}
            return {"pause": edit.name, **told, "expected": edit.expected}
    assert isinstance(edit.fact, Resume), "a schedule is held or let go"
    missed = None if edit.fact.missed is None else str(edit.fact.missed)
    return {"resume": edit.name, "missed": missed, "by": edit.fact.by, "expected": edit.expected}


def _read(data: Mapping[str, Any]) -> Edit:
    expected = data["expected"]
    match data:
        case {"put": definition}:
            job = read_definition(json.dumps(definition), id=job_id(definition["name"]), version=1)
            return Put(job, expected, None if data.get("policy") is None else update_policy(data["policy"]))
        case {"rename": name}:
            return Rename(name, data["to"], expected)
        case {"remove": name}:
            return Remove(name, timedelta(seconds=data["retire_after"]), expected)
        case {"pause": name}:
            until = None if data["until"] is None else datetime.fromisoformat(data["until"])
            return Tell(name, Pause(until, Missed(data["missed"]), data["reason"], data["by"]), expected)
    missed = None if data["missed"] is None else Missed(data["missed"])
    return Tell(data["resume"], Resume(data["by"], missed), expected)
