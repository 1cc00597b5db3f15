"""Join tokens: each lets one agent enroll, once. Only hashes are kept."""

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
    """What is known of a token, without the token."""

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
    """Keep a single-use token's hash."""
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
    """The token with a hash, good for anything or not."""
    query = sa.select(join_tokens).where(join_tokens.c.token_hash == token_hash)
    row = connection.execute(query).one_or_none()
    return None if row is None else _token(row)


def is_valid_token(connection: Connection, token_hash: str, *, now: datetime) -> bool:
    """Whether a host could join with a token now."""
    found = sa.exists().where(_is_valid(token_hash, now))
    return bool(connection.execute(sa.select(found)).scalar())


def use_join_token(connection: Connection, *, token_hash: str, host_id: HostId, now: datetime) -> bool | None:
    """Use a token up; its auto_admit, or None when it is unknown, used or too old."""
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
    """End the validity of a token that nobody used; False when there is none."""
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
    """Every token there was, newest first."""
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
