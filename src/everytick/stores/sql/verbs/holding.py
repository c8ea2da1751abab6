"""What most verbs on a job begin with."""

from everytick.errors import NotFound
from everytick.stores.sql.commands import Rows, Verb
from everytick.stores.sql.queries import ColdQueries
from everytick.stores.sql.statements import Row


def held_job(q: ColdQueries, job_id: str) -> Verb[Row]:
    """Lock where the job stands, and return its key, id, name and when it was removed.

    From here on no plan of the job commits before this transaction ends.
    """
    found: Rows = yield q.hold_job(job_id=job_id)
    if not found:
        raise NotFound("job", job_id)
    return found[0]
