"""Roles as data: each role has all permissions of the one before it."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Role(StrEnum):
    """The role of a caller."""

    #: Look at everything but secrets.
    VIEWER = "viewer"
    #: Register variants and programs; submit, cancel and rerun matrices.
    SUBMITTER = "submitter"
    #: Phones, hosts, join tokens, storage.
    OPERATOR = "operator"
    #: Access tokens.
    ADMIN = "admin"
    #: One host's sessions, attempts and files, and nothing of people's.
    AGENT = "agent"


#: From the one that may do least. Agents are none of people's.
ROLES_BY_RANK = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)


def is_permitted(role: Role, needed: Role) -> bool:
    """Tell whether a user of a role may do what another role is needed for."""
    if role not in ROLES_BY_RANK or needed not in ROLES_BY_RANK:
        return role is needed
    return ROLES_BY_RANK.index(role) >= ROLES_BY_RANK.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A person or script behind a request.

    `name` is proven by a token where `is_authenticated`; on loopback it is what they say of themselves.
    """

    name: str
    role: Role
    is_authenticated: bool
    #: When the token stops to authenticate them; None: never, or in a few hours by design.
    token_expires_at: datetime | None = field(default=None, compare=False)

    @property
    def actor(self) -> str:
        """Return the name of the caller in events."""
        return f"user:{self.name}"
