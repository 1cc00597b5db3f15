"""Access tokens: each proves the name and role of a caller; and sessions of browsers that signed in with one.

Only hashes are stored.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from farm.core.operations.event import AccessEvent
from farm.core.operations.role import Role
from farm.core.operations.sign_in import PROVIDER_ACTOR
from farm.database.tables import access_tokens, page_sessions
from farm.database.transaction import Tx
from farm.store.operations.events import record_event, record_if_moved
from farm.wire.documents.access import AccessState, AccessToken
from farm.wire.tokens import ID_LENGTH

#: The public id of a token: the beginning of its hash.
_public_id = sa.func.substr(access_tokens.c.token_hash, 1, ID_LENGTH)


def add_access_token(
    tx: Tx, *, token_hash: str, name: str, role: Role, valid_for: timedelta | None, replaces: str = ""
) -> AccessToken:
    """Store a token's hash; `replaces` is the id of the one that it is in place of."""
    row = tx.connection.execute(
        access_tokens.insert()
        .values(
            token_hash=token_hash,
            name=name,
            role=role,
            created_at=tx.now,
            created_by=tx.actor,
            expires_at=None if valid_for is None else tx.now + valid_for,
        )
        .returning(access_tokens)
    ).one()
    token = _token(row, tx.now)
    cause = f"{role} {name}, in place of {replaces}" if replaces else f"{role} {name}"
    record_event(tx, AccessEvent.ACCESS_CREATED, token.token_id, to_state="open", cause=cause)
    return token


def find_token(tx: Tx, token_hash: str) -> AccessToken | None:
    """Return the token with a hash, valid or not, or None."""
    return _find(tx, access_tokens.c.token_hash == token_hash)


def find_valid_token(tx: Tx, token_hash: str) -> AccessToken | None:
    """Return the token with a hash if it is valid now, else None."""
    return _find(tx, access_tokens.c.token_hash == token_hash, _is_valid(tx.now))


def has_token(tx: Tx, role: Role) -> bool:
    """Return True if a role has a token that was not revoked, expired or not."""
    is_there = sa.exists().where(access_tokens.c.role == role.value, access_tokens.c.revoked_at.is_(None))
    return bool(tx.connection.execute(sa.select(is_there)).scalar())


def shorten_token(tx: Tx, token_id: str, expires_at: datetime) -> None:
    """Let a token expire at a time, unless it does so sooner."""
    is_later = access_tokens.c.expires_at.is_(None) | (access_tokens.c.expires_at > expires_at)
    tx.connection.execute(
        access_tokens.update().where(_has_id(token_id), is_later).values(expires_at=expires_at)
    )


def store_token_uses(tx: Tx, used_at: Mapping[str, datetime]) -> None:
    """Store when tokens, by their hashes, were last used; an earlier time than the stored one is left."""
    at = sa.bindparam("at", type_=access_tokens.c.last_used_at.type)
    is_newer = access_tokens.c.last_used_at.is_(None) | (access_tokens.c.last_used_at < at)
    tx.connection.execute(
        access_tokens.update()
        .where(access_tokens.c.token_hash == sa.bindparam("used_hash"), is_newer)
        .values(last_used_at=at),
        [{"used_hash": token_hash, "at": at} for token_hash, at in used_at.items()],
    )


def revoke_access_token(tx: Tx, token_id: str) -> bool:
    """Revoke a valid token; False if there is none."""
    return record_if_moved(
        tx,
        access_tokens.update().where(_has_id(token_id), _is_valid(tx.now)).values(revoked_at=tx.now),
        AccessEvent.ACCESS_REVOKED,
        token_id,
        from_state="open",
        to_state="revoked",
    )


def find_access_token(tx: Tx, token_id: str) -> AccessToken | None:
    """Return a token by its public id, or None."""
    return _find(tx, _has_id(token_id))


def _find(tx: Tx, *conditions: sa.ColumnElement[bool]) -> AccessToken | None:
    row = tx.connection.execute(sa.select(access_tokens).where(*conditions)).one_or_none()
    return None if row is None else _token(row, tx.now)


def find_name_of(tx: Tx, created_by: str) -> str | None:
    """Return the name in the tokens that a person got by an identity provider; None without one."""
    query = sa.select(access_tokens.c.name).where(access_tokens.c.created_by == created_by).limit(1)
    return tx.connection.execute(query).scalar_one_or_none()


def is_name_used(tx: Tx, name: str) -> bool:
    """Return True if a token was ever made for a name, in upper or lower case."""
    is_there = sa.exists().where(sa.func.lower(access_tokens.c.name) == name.lower())
    return bool(tx.connection.execute(sa.select(is_there)).scalar())


def list_access_tokens(tx: Tx, *, after: str, limit: int) -> list[AccessToken]:
    """Return up to `limit` tokens whose ids follow `after`, in the order of their ids.

    Those of an identity provider are left out once they expired: a person gets one each day.
    """
    is_of_a_sign_in = access_tokens.c.created_by.startswith(PROVIDER_ACTOR, autoescape=True)
    is_listed = ~is_of_a_sign_in | access_tokens.c.revoked_at.is_not(None) | _is_valid(tx.now)
    query = sa.select(access_tokens).where(_public_id > after, is_listed).order_by(_public_id).limit(limit)
    return [_token(row, tx.now) for row in tx.connection.execute(query)]


def add_page_session(tx: Tx, *, session_hash: str, token_hash: str, expires_at: datetime) -> None:
    """Store a session, and forget those that are over."""
    tx.connection.execute(page_sessions.delete().where(page_sessions.c.expires_at <= tx.now))
    tx.connection.execute(
        page_sessions.insert().values(
            session_hash=session_hash, token_hash=token_hash, created_at=tx.now, expires_at=expires_at
        )
    )


def find_token_of_session(tx: Tx, session_hash: str) -> str | None:
    """Return the hash of the token that a session was signed in with; None if the session is over."""
    query = sa.select(page_sessions.c.token_hash).where(
        page_sessions.c.session_hash == session_hash,
        page_sessions.c.expires_at > tx.now,
        page_sessions.c.ended_at.is_(None),
    )
    return tx.connection.execute(query).scalar_one_or_none()


def find_token_for_session(tx: Tx, session_hash: str) -> AccessToken | None:
    """Return the valid token that an identity provider's sign-in made for a session; nothing else has it.

    Token and session are of one transaction. A session that a person began with a token of theirs is later.
    """
    session = sa.select(page_sessions.c.token_hash).where(
        page_sessions.c.session_hash == session_hash,
        page_sessions.c.created_at == access_tokens.c.created_at,
    )
    is_of_a_sign_in = access_tokens.c.created_by.startswith(PROVIDER_ACTOR, autoescape=True)
    return _find(tx, access_tokens.c.token_hash.in_(session), is_of_a_sign_in, _is_valid(tx.now))


def end_page_session(tx: Tx, session_hash: str) -> None:
    """End a session; one that is over stays so."""
    tx.connection.execute(
        page_sessions.update()
        .where(page_sessions.c.session_hash == session_hash, page_sessions.c.ended_at.is_(None))
        .values(ended_at=tx.now)
    )


def _is_valid(now: datetime) -> sa.ColumnElement[bool]:
    is_in_time = access_tokens.c.expires_at.is_(None) | (access_tokens.c.expires_at > now)
    return access_tokens.c.revoked_at.is_(None) & is_in_time


def _has_id(token_id: str) -> sa.ColumnElement[bool]:
    return _public_id == token_id


def _token(row: sa.Row[Any], now: datetime) -> AccessToken:
    state = AccessState.OPEN
    if row.revoked_at is not None:
        state = AccessState.REVOKED
    elif row.expires_at is not None and row.expires_at <= now:
        state = AccessState.EXPIRED
    return AccessToken(
        token_id=row.token_hash[:ID_LENGTH],
        state=state,
        role=Role(row.role),
        name=row.name,
        created_at=row.created_at,
        created_by=row.created_by,
        expires_at=row.expires_at,
        revoked_at=row.revoked_at,
        last_used_at=row.last_used_at,
    )
