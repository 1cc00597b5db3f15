"""Join tokens: each enrolls one agent once. Only hashes are stored."""

from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from farm.core.base.ids import HostId
from farm.core.operations.event import AccessEvent
from farm.database.tables import join_tokens
from farm.database.transaction import Tx
from farm.store.operations.events import record_event, record_if_moved
from farm.wire.documents.access import JoinToken, TokenState
from farm.wire.tokens import ID_LENGTH

#: The public id of a token: the beginning of its hash.
_public_id = sa.func.substr(join_tokens.c.token_hash, 1, ID_LENGTH)


def add_join_token(
    tx: Tx, *, token_hash: str, auto_admit: bool, valid_for: timedelta, host: HostId | None
) -> JoinToken:
    """Store the hash of a single-use token."""
    row = tx.connection.execute(
        join_tokens.insert()
        .values(
            token_hash=token_hash,
            auto_admit=auto_admit,
            created_at=tx.now,
            expires_at=tx.now + valid_for,
            host=host,
        )
        .returning(join_tokens)
    ).one()
    token = _token(row, tx.now)
    cause = f"valid until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    record_event(tx, AccessEvent.JOIN_CREATED, token.token_id, to_state="open", cause=cause)
    return token


def find_join_token(tx: Tx, token_hash: str) -> JoinToken | None:
    """Return the token with a hash, valid or not."""
    query = sa.select(join_tokens).where(join_tokens.c.token_hash == token_hash)
    row = tx.connection.execute(query).one_or_none()
    return None if row is None else _token(row, tx.now)


def is_valid_token(tx: Tx, token_hash: str, host_id: HostId) -> bool:
    """Return True if a host can join with the token now."""
    is_valid = sa.exists().where(join_tokens.c.token_hash == token_hash, _is_valid(tx.now), _is_for(host_id))
    return bool(tx.connection.execute(sa.select(is_valid)).scalar())


def use_join_token(tx: Tx, *, token_hash: str, host_id: HostId) -> bool | None:
    """Mark a token as used and return its auto_admit; None if it cannot be used by this host."""
    auto_admit = tx.connection.execute(
        join_tokens.update()
        .where(join_tokens.c.token_hash == token_hash, _is_valid(tx.now), _is_for(host_id))
        .values(used_at=tx.now, used_by=host_id)
        .returning(join_tokens.c.auto_admit)
    ).scalar_one_or_none()
    if auto_admit is not None:
        record_event(
            tx.by(f"agent:{host_id}"),
            AccessEvent.JOIN_USED,
            token_hash[:ID_LENGTH],
            from_state="open",
            to_state="used",
            cause=f"host {host_id}",
        )
    return auto_admit


def expire_join_token(tx: Tx, token_id: str) -> bool:
    """Revoke an unused token; False if there is none."""
    return record_if_moved(
        tx,
        join_tokens.update().where(_has_id(token_id), _is_valid(tx.now)).values(expires_at=tx.now),
        AccessEvent.JOIN_REVOKED,
        token_id,
        from_state="open",
        to_state="revoked",
    )


def find_token_by_id(tx: Tx, token_id: str) -> JoinToken | None:
    """Return a token by its public id, or None."""
    row = tx.connection.execute(sa.select(join_tokens).where(_has_id(token_id))).one_or_none()
    return None if row is None else _token(row, tx.now)


def list_join_tokens(tx: Tx, *, after: str, limit: int) -> list[JoinToken]:
    """Return up to `limit` tokens whose ids follow `after`, in the order of their ids."""
    query = sa.select(join_tokens).where(_public_id > after).order_by(_public_id).limit(limit)
    return [_token(row, tx.now) for row in tx.connection.execute(query)]


def _token(row: sa.Row[Any], now: datetime) -> JoinToken:
    state = TokenState.OPEN if row.expires_at > now else TokenState.EXPIRED
    return JoinToken(
        token_id=row.token_hash[:ID_LENGTH],
        state=state if row.used_at is None else TokenState.USED,
        auto_admit=row.auto_admit,
        host=row.host,
        created_at=row.created_at,
        expires_at=row.expires_at,
        used_at=row.used_at,
        used_by=row.used_by,
    )


def _is_valid(now: datetime) -> sa.ColumnElement[bool]:
    return join_tokens.c.used_at.is_(None) & (join_tokens.c.expires_at > now)


def _is_for(host_id: HostId) -> sa.ColumnElement[bool]:
    return join_tokens.c.host.is_(None) | (join_tokens.c.host == host_id)


def _has_id(token_id: str) -> sa.ColumnElement[bool]:
    return _public_id == token_id
