"""The person who asks for something: name, role, grants, and how and from where the person came."""

from collections.abc import Iterable

from everytick.domain.people import CameBy, Doer, Grant, Role, Token, User
from everytick.domain.values import value

__all__ = ["CameBy", "Grant", "Person", "Role", "local_admin", "person_of_token", "person_of_user", "tags_of"]


@value(frozen=True)
class Person:
    """A person or program that asks. `name` stands as `by` on every fact that the request writes.

    `grants` raise the role on jobs with a tag. `address` is where the request came from.
    """

    name: str
    role: Role
    grants: tuple[Grant, ...] = ()
    came_by: CameBy = CameBy.SESSION
    address: str = ""

    @property
    def doer(self) -> Doer:
        """The same person as the audit names them."""
        return Doer(self.name, self.came_by, self.address)

    def role_on(self, tags: Iterable[str]) -> Role:
        """Return the role on a job with these tags."""
        known = frozenset(tags)
        return max([self.role, *(grant.role for grant in self.grants if grant.tag in known)])

    def may(self, role: Role, tags: Iterable[str] = ()) -> bool:
        """Return whether the person has this role, on a job with these tags."""
        return self.role_on(tags) >= role

    def may_somewhere(self, role: Role) -> bool:
        """Return whether the person has this role on all jobs, or by a grant on some."""
        return max([self.role, *(grant.role for grant in self.grants)]) >= role

    def sees_payloads(self, tags: Iterable[str] = ()) -> bool:
        """Return whether payloads, results, errors and output of a job with these tags are shown."""
        return self.may(Role.OPERATOR, tags)


def local_admin(address: str = "") -> Person:
    """Return who asks on this host while the service has no users."""
    return Person("local", Role.ADMIN, came_by=CameBy.LOCAL, address=address)


def person_of_user(user: User, came_by: CameBy, address: str = "") -> Person:
    """Return the person that a user is."""
    return Person(user.name, user.role, user.grants, came_by, address)


def person_of_token(token: Token, address: str = "") -> Person:
    """Return who asks with a token: it may do no more than it says, and no more than its owner may now."""
    name = f"{token.owner}/{token.name}" if token.owner else token.name
    role, grants = token.role, token.grants
    if token.owner:
        bound = token.owner_role or Role.VIEWER
        owner, own = Person("", bound, token.owner_grants), Person("", token.role, token.grants)
        tags = sorted({grant.tag for grant in (*token.grants, *token.owner_grants)})
        role = min(token.role, bound)
        on_tags = [Grant(tag, min(owner.role_on([tag]), own.role_on([tag]))) for tag in tags]
        grants = tuple(grant for grant in on_tags if grant.role > role)
    return Person(name, role, grants, CameBy.TOKEN, address)


def tags_of(name: str, tags: Iterable[str]) -> tuple[str, ...]:
    """Return the tags by which grants name a job: its own, and `job:NAME` for this job alone."""
    return (*tags, f"job:{name}")
