"""Access tokens: each proves the name and role of a caller. Only hashes are stored."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.operations.event import EventSubject, FarmEvent
from farm.core.operations.role import Role
from farm.database.tables import access_tokens
from farm.store.operations.events import record_event, record_if_moved
from farm.wire.tokens import ID_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessToken:
    """An access token without its secret."""

    token_id: str
    #: The name of its owner.
    name: str
    role: Role
    created_at: datetime
    created_by: str
    #: None: valid until it is revoked.
    expires_at: datetime | None
    revoked_at: datetime | None = None


def add_access_token(
    connection: Connection,
    *,
    token_hash: str,
    name: str,
    role: Role,
    expires_at: datetime | None,
    now: datetime,
    actor: str,
) -> AccessToken:
    """Store a token's hash."""
    token_id = token_hash[:ID_LENGTH]
    connection.execute(
        access_tokens.insert().values(
            token_hash=token_hash,
            name=name,
            role=role,
            created_at=now,
            created_by=actor,
            expires_at=expires_at,
        )
    )
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=FarmEvent.ACCESS_CREATED,
        subject=EventSubject.ACCESS,
        subject_id=token_id,
        to_state="open",
        cause=f"{role} {name}",
    )
    return AccessToken(
        token_id=token_id, name=name, role=role, created_at=now, created_by=actor, expires_at=expires_at
    )


def find_token(connection: Connection, token_hash: str) -> AccessToken | None:
    """Return the token with a hash, valid or not, or None."""
    row = connection.execute(
        sa.select(access_tokens).where(access_tokens.c.token_hash == token_hash)
    ).one_or_none()
    return None if row is None else _token(row)


def find_valid_token(connection: Connection, token_hash: str, *, now: datetime) -> AccessToken | None:
    """Return the token with a hash if it is valid now, else None."""
    row = connection.execute(
        sa.select(access_tokens).where(access_tokens.c.token_hash == token_hash, _is_valid(now))
    ).one_or_none()
    return None if row is None else _token(row)


def has_valid_token(connection: Connection, role: Role, *, now: datetime) -> bool:
    """Return True if a role has a valid token now."""
    is_valid = sa.exists().where(access_tokens.c.role == role.value, _is_valid(now))
    return bool(connection.execute(sa.select(is_valid)).scalar())


def revoke_access_token(connection: Connection, token_id: str, *, now: datetime, actor: str) -> bool:
    """Revoke a valid token; False if there is none."""
    return record_if_moved(
        connection,
        access_tokens.update().where(_has_id(token_id), _is_valid(now)).values(revoked_at=now),
        at=now,
        actor=actor,
        kind=FarmEvent.ACCESS_REVOKED,
        subject=EventSubject.ACCESS,
        subject_id=token_id,
        from_state="open",
        to_state="revoked",
    )


def find_access_token(connection: Connection, token_id: str) -> AccessToken | None:
    """Return a token by its public id, or None."""
    row = connection.execute(sa.select(access_tokens).where(_has_id(token_id))).one_or_none()
    return None if row is None else _token(row)


def list_access_tokens(connection: Connection) -> list[AccessToken]:
    """Return all tokens, newest first."""
    newest_first = access_tokens.c.created_at.desc(), access_tokens.c.token_hash
    return [_token(row) for row in connection.execute(sa.select(access_tokens).order_by(*newest_first))]


def _is_valid(now: datetime) -> sa.ColumnElement[bool]:
    is_in_time = access_tokens.c.expires_at.is_(None) | (access_tokens.c.expires_at > now)
    return access_tokens.c.revoked_at.is_(None) & is_in_time


def _has_id(token_id: str) -> sa.ColumnElement[bool]:
    return sa.func.substr(access_tokens.c.token_hash, 1, ID_LENGTH) == token_id


def _token(row: sa.Row[Any]) -> AccessToken:
    return AccessToken(
        token_id=row.token_hash[:ID_LENGTH],
        name=row.name,
        role=Role(row.role),
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
    )
