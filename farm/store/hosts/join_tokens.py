"""Join tokens: each enrolls one agent once. Only hashes are stored."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.operations.event import EventSubject, FarmEvent
from farm.database.tables import join_tokens
from farm.store.operations.events import record_event, record_if_moved
from farm.wire.tokens import ID_LENGTH


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinToken:
    """A join token without its secret."""

    token_id: str
    auto_admit: bool
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    used_by: HostId | None = None


def add_join_token(
    connection: Connection,
    *,
    token_hash: str,
    auto_admit: bool,
    now: datetime,
    valid_for: timedelta,
    actor: str,
) -> JoinToken:
    """Store the hash of a single-use token."""
    token = JoinToken(
        token_id=token_hash[:ID_LENGTH], auto_admit=auto_admit, created_at=now, expires_at=now + valid_for
    )
    connection.execute(
        join_tokens.insert().values(
            token_hash=token_hash, auto_admit=auto_admit, created_at=now, expires_at=token.expires_at
        )
    )
    record_event(
        connection,
        at=now,
        actor=actor,
        kind=FarmEvent.JOIN_CREATED,
        subject=EventSubject.JOIN,
        subject_id=token.token_id,
        to_state="open",
        cause=f"valid until {token.expires_at:%Y-%m-%d %H:%M} UTC",
    )
    return token


def find_join_token(connection: Connection, token_hash: str) -> JoinToken | None:
    """Return the token with a hash, valid or not."""
    query = sa.select(join_tokens).where(join_tokens.c.token_hash == token_hash)
    row = connection.execute(query).one_or_none()
    return None if row is None else _token(row)


def is_valid_token(connection: Connection, token_hash: str, *, now: datetime) -> bool:
    """Return True if a host can join with the token now."""
    is_valid = sa.exists().where(_is_valid(token_hash, now))
    return bool(connection.execute(sa.select(is_valid)).scalar())


def use_join_token(connection: Connection, *, token_hash: str, host_id: HostId, now: datetime) -> bool | None:
    """Mark a token as used and return its auto_admit; None if it is unknown, used or expired."""
    auto_admit = connection.execute(
        join_tokens.update()
        .where(_is_valid(token_hash, now))
        .values(used_at=now, used_by=host_id)
        .returning(join_tokens.c.auto_admit)
    ).scalar_one_or_none()
    if auto_admit is not None:
        record_event(
            connection,
            at=now,
            actor=f"agent:{host_id}",
            kind=FarmEvent.JOIN_USED,
            subject=EventSubject.JOIN,
            subject_id=token_hash[:ID_LENGTH],
            from_state="open",
            to_state="used",
            cause=f"host {host_id}",
        )
    return auto_admit


def expire_join_token(connection: Connection, token_id: str, *, now: datetime, actor: str) -> bool:
    """Revoke an unused token; False if there is none."""
    return record_if_moved(
        connection,
        join_tokens.update()
        .where(
            _has_id(token_id),
            join_tokens.c.used_at.is_(None),
            join_tokens.c.expires_at > now,
        )
        .values(expires_at=now),
        at=now,
        actor=actor,
        kind=FarmEvent.JOIN_REVOKED,
        subject=EventSubject.JOIN,
        subject_id=token_id,
        from_state="open",
        to_state="revoked",
    )


def list_join_tokens(connection: Connection) -> list[JoinToken]:
    """Return all tokens, newest first."""
    rows = connection.execute(
        sa.select(join_tokens).order_by(join_tokens.c.created_at.desc(), join_tokens.c.token_hash)
    )
    return [_token(row) for row in rows]


def _token(row: sa.Row[Any]) -> JoinToken:
    return JoinToken(
        token_id=row.token_hash[:ID_LENGTH],
        auto_admit=row.auto_admit,
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
        used_by=row.used_by,
    )


def _is_valid(token_hash: str, now: datetime) -> sa.ColumnElement[bool]:
    return sa.and_(
        join_tokens.c.token_hash == token_hash,
        join_tokens.c.used_at.is_(None),
        join_tokens.c.expires_at > now,
    )


def _has_id(token_id: str) -> sa.ColumnElement[bool]:
    return sa.func.substr(join_tokens.c.token_hash, 1, ID_LENGTH) == token_id
