"""Stable numbers from a job's id, for `H` and `spread`: the same on every node, kept by a rename."""


def hash_number(job_id: str, name: str, size: int) -> int:
    """Return the job's number below `size` under this name: SHA-1 of `<job id>:<name>`, its first eight bytes."""
    from hashlib import sha1  # loads the system's crypto library, which few schedules need

    digest = sha1(f"{job_id}:{name}".encode(), usedforsecurity=False).digest()
    return int.from_bytes(digest[:8]) % size
