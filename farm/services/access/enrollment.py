"""Who is calling: join tokens for new hosts, credentials for known ones. Only hashes are stored."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.errors import AuthError, Conflict, IdempotencyKeyReused, NotFound
from farm.store.hosts import hosts, join_tokens
from farm.store.hosts.join_tokens import JoinToken
from farm.store.hosts.transitions import reactivate_host
from farm.wire.agents.protocol import Enrollment, EnrollmentAnswer
from farm.wire.base import check_served
from farm.wire.documents.join_tokens import NewTokenView, TokenRequest, TokenState, TokenView
from farm.wire.tokens import TokenKind, derive_secret, hash_of, new_secret

#: To whoever asks for another token under the secret of one that there is.
NOT_THE_SAME_HINT = "draw another one for another request; only the very same may be sent again"
UNKNOWN_CREDENTIAL = "no host has this credential"
#: An agent that beat so recently is there; they beat every ten seconds at least.
RECENT_HEARTBEAT = timedelta(seconds=30)


def create_join_token(connection: Connection, *, auto_admit: bool, now: datetime) -> str:
    """A token for a host that the farm itself lets in."""
    request = TokenRequest(auto_admit=auto_admit)
    return issue_join_token(connection, request, now=now, actor="farm").token


def issue_join_token(
    connection: Connection, request: TokenRequest, *, now: datetime, actor: str, agents_url: str | None = None
) -> NewTokenView:
    """A token that lets one agent enroll, once; shown this one time, stored as its hash.

    One that the caller drew is made once, however often it is asked for.

    Raises:
        InvalidInput: what the caller drew is no secret.
        IdempotencyKeyReused: it is the token of another request.
    """
    kind, valid_for = TokenKind.JOIN, timedelta(seconds=request.valid_s)
    token = new_secret(kind) if request.token is None else derive_secret(kind, request.token)
    kept = join_tokens.find_join_token(connection, hash_of(token))
    if kept is None:
        kept = join_tokens.add_join_token(
            connection,
            token_hash=hash_of(token),
            auto_admit=request.auto_admit,
            now=now,
            valid_for=valid_for,
            actor=actor,
        )
    elif kept.auto_admit != request.auto_admit or not _was_valid_for(kept, valid_for, now):
        raise IdempotencyKeyReused(
            f"join token {kept.token_id} was made by another request", hint=NOT_THE_SAME_HINT
        )
    return NewTokenView(**_token_fields(kept, now), token=token, agents_url=agents_url)


def _was_valid_for(kept: JoinToken, valid_for: timedelta, now: datetime) -> bool:
    """Whether it may have been made for so long: where it was revoked, its time ended sooner.

    Of one whose time is over nothing says which; who asks for it then is told of a token that lets nobody in.
    """
    until = kept.created_at + valid_for
    return kept.expires_at == until or kept.expires_at <= min(now, until)


def list_token_views(connection: Connection, *, now: datetime) -> list[TokenView]:
    """Every token there was, newest first."""
    return [TokenView(**_token_fields(each, now)) for each in join_tokens.list_join_tokens(connection)]


def revoke_join_token(connection: Connection, token_id: str, *, now: datetime, actor: str) -> TokenView:
    """Let nobody enroll with a token any more.

    Raises:
        NotFound: there is no such token.
        Conflict: it was used, or is too old already.
    """
    is_revoked = join_tokens.expire_join_token(connection, token_id, now=now, actor=actor)
    found = [view for view in list_token_views(connection, now=now) if view.token_id == token_id]
    if not found:
        raise NotFound(f"there is no token {token_id}", hint="`farm token list` names them")
    if not is_revoked:
        by = f" by {found[0].used_by}" if found[0].used_by else ""
        raise Conflict(
            f"join token {token_id} is {found[0].state}{by} already",
            hint="a host that joined with it goes on: only its credential counts from then on",
        )
    return found[0]


def check_join_token(connection: Connection, enrollment: Enrollment, *, now: datetime) -> None:
    """Turn strangers away by a look: whoever has no token must not keep writers waiting.

    Raises:
        AuthError: the token is unknown, used up or too old.
    """
    if not join_tokens.is_valid_token(connection, hash_of(enrollment.join_token.get_secret_value()), now=now):
        raise _bad_join_token()


def enroll(
    connection: Connection, enrollment: Enrollment, *, now: datetime, known_as: HostId | None = None
) -> EnrollmentAnswer:
    """Turn a join token into a host credential.

    `known_as` is the host whose present credential the caller has, if any: that one may always join again.

    Raises:
        AuthError: the token is unknown, used up or too old.
        Conflict: an agent of that name is at work, and the caller is not it; the token stays good.
    """
    host_id = HostId(enrollment.host)
    credential = new_secret(TokenKind.HOST)
    # The token's row refers to the host, so the host is there first; a bad token rolls it back.
    hosts.put_host(
        connection, host_id=host_id, credential_hash=hash_of(credential), auto_admit=False, now=now
    )
    auto_admit = join_tokens.use_join_token(
        connection, token_hash=hash_of(enrollment.join_token.get_secret_value()), host_id=host_id, now=now
    )
    if auto_admit is None:
        raise _bad_join_token()
    # An operator made the token: that lets a machine back in which another had taken out.
    reactivate_host(connection, host_id, now=now)
    # Only who has a good token learns which hosts there are; the refusal rolls its use back.
    if known_as != host_id:
        _check_name_is_free(connection, host_id, now=now)
    hosts.put_host(
        connection, host_id=host_id, credential_hash=hash_of(credential), auto_admit=auto_admit, now=now
    )
    return EnrollmentAnswer(host_id=host_id, credential=credential)


def _bad_join_token() -> AuthError:
    return AuthError(
        "the join token is unknown, used up or too old", hint="`farm token create` makes a new one"
    )


def _check_name_is_free(connection: Connection, host_id: HostId, *, now: datetime) -> None:
    """Two machines of one name, cloned ones say, would each take the other's credential away."""
    session = hosts.current_session(connection, host_id)
    if session is not None and session.heartbeat_at > now - RECENT_HEARTBEAT:
        raise Conflict(
            f"an agent called {host_id} is at work",
            hint="call this one otherwise (--host NAME); if it is this machine's, just stopped, try again in "
            f"{RECENT_HEARTBEAT.total_seconds():.0f} s",
        )


def authenticate(connection: Connection, credential: str) -> HostId:
    """The host that holds a credential.

    Looked up by its hash, so nothing of a credential can be learned from how long the answer takes.

    Raises:
        AuthError: nobody holds it.
    """
    host_id = hosts.find_host_by_credential(connection, hash_of(credential))
    if host_id is None:
        raise AuthError(UNKNOWN_CREDENTIAL)
    return host_id


def check_wire_version(version: int) -> None:
    """Refuse an agent this farm cannot understand.

    Raises:
        WireVersionUnsupported: naming the versions that are served.
    """
    check_served(version)


def _token_fields(token: JoinToken, now: datetime) -> dict[str, Any]:
    return {**asdict(token), "state": _token_state(token, now)}


def _token_state(token: JoinToken, now: datetime) -> TokenState:
    if token.used_at is not None:
        return TokenState.USED
    return TokenState.OPEN if token.expires_at > now else TokenState.EXPIRED
