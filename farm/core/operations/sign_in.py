"""People whom an identity provider (OpenID Connect) knows: their role by groups, and their name on a farm."""

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from farm.core.base.address import is_loopback
from farm.core.errors import AuthError, Forbidden
from farm.core.operations.role import ROLES_BY_RANK, Role

#: The beginning of the actor that stands for a person at a provider; those of the farm's own begin otherwise.
PROVIDER_ACTOR = "oidc:"
#: Room for a number behind it, within the 64 characters of a name.
_MAX_NAME = 56
_SUBJECT = re.compile(r"[\x21-\x7e]{1,255}")
_MAX_CLAIM = 255
_UNNAMED = "person"
#: The part of a person's groups that an error names.
_MAX_SHOWN = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """A person as the provider identified them: by issuer and subject, which never become another's."""

    issuer: str
    subject: str
    #: What the person is called there, in the form of a farm's name; others may be called the same.
    called: str
    role: Role

    @property
    def actor(self) -> str:
        """Return what the farm records a person's tokens under."""
        return f"{PROVIDER_ACTOR}{self.issuer}#{self.subject}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderSettings:
    """An identity provider, and the farm as its client."""

    issuer: str
    client_id: str
    #: None: a public client.
    client_secret: str | None = field(repr=False)
    roles: Mapping[str, Role]
    #: The claim of ID tokens, or of the userinfo, that has a person's groups.
    groups_claim: str
    #: With blanks between them.
    scopes: str


def secure_address(url: str, *, has_query: bool = False) -> str:
    """Return the https address, or http one of loopback, without a user or fragment.

    Raises:
        ValueError: it is none.
    """
    parts = urlsplit(url)
    is_whole = parts.hostname and "@" not in parts.netloc and not parts.fragment
    is_secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname or ""))
    if not is_secure or not is_whole or (parts.query and not has_query):
        raise ValueError("it must look like https://sso.example.org; http is for loopback only")
    return url


def role_by_group(text: str) -> Mapping[str, Role]:
    """Parse `ml-ops=operator,ml=submitter`.

    Raises:
        ValueError: it is written otherwise, or names a role that people cannot have.
    """
    roles: dict[str, Role] = {}
    for part in text.split(","):
        group, separator, role = (word.strip() for word in part.rpartition("="))
        if not separator or not group or role not in ROLES_BY_RANK or group in roles:
            raise ValueError(
                f"{part.strip()!r} must be a group that no other part names, and one of"
                f" {', '.join(ROLES_BY_RANK)}: ml-ops=operator,ml=submitter"
            )
        roles[group] = Role(role)
    return roles


def identity_of(
    claims: Mapping[str, Any], *, issuer: str, groups_claim: str, roles: Mapping[str, Role]
) -> Identity:
    """Return the person whom verified claims describe, with the highest role of their groups.

    Raises:
        AuthError: the subject is none that can be recorded.
        Forbidden: none of their groups has a role.
    """
    subject = claims.get("sub")
    if not isinstance(subject, str) or not _SUBJECT.fullmatch(subject):
        raise AuthError(
            "the identity provider names no subject that a farm can record",
            hint="`sub` has up to 255 printable ASCII characters without blanks",
        )
    called = next(filter(None, (name_from(claims.get(name)) for name in _NAME_CLAIMS)), _UNNAMED)
    groups = _groups(claims.get(groups_claim))
    held = {roles[group] for group in groups if group in roles}
    if not held:
        said = f"has {', '.join(groups)[:_MAX_SHOWN]}" if groups else "has no group, or is missing"
        raise Forbidden(
            f"none of the groups of {called} has a role on this farm: the claim {groups_claim} {said}",
            hint="FARM_OIDC_ROLES says which groups have one; the provider says who is in them, and whether"
            " ID tokens have the claim",
        )
    role = max(held, key=ROLES_BY_RANK.index)
    return Identity(issuer=issuer, subject=subject, called=called, role=role)


_NAME_CLAIMS = ("preferred_username", "email", "sub")


def name_from(claim: object) -> str:
    """Return a claim as a name that can own harnesses: lower-case ASCII without blanks; empty without one."""
    if not isinstance(claim, str):
        return ""
    plain = unicodedata.normalize("NFKD", claim[:_MAX_CLAIM]).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9._@+-]+", "-", plain).strip("-._@+")[:_MAX_NAME].rstrip("-._@+")


def numbered(name: str, number: int) -> str:
    """Return a name for the person with that number among those who are called the same."""
    return name if number == 1 else f"{name}.{number}"


def _groups(claim: object) -> Sequence[str]:
    if isinstance(claim, str):
        return [claim]
    return [each for each in claim if isinstance(each, str)] if isinstance(claim, list) else []
