"""Identify hosts: join tokens for new ones, credentials for known ones. Only hashes are stored."""

from datetime import datetime, timedelta

from sqlalchemy.engine import Connection

from farm.core.base.ids import HostId
from farm.core.errors import AuthError, Conflict, IdempotencyKeyReused, NotFound
from farm.database.transaction import Tx
from farm.store.hosts import hosts, join_tokens
from farm.store.hosts.hosts import reactivate_host
from farm.wire.agents.protocol import Enrollment, EnrollmentAnswer
from farm.wire.documents.access import JoinToken, NewJoinToken, TokenRequest
from farm.wire.tokens import TokenKind, derive_secret, hash_of, new_secret

#: For a request of another token under the secret of an existing one.
NOT_THE_SAME_HINT = "draw another one for another request; only the very same may be sent again"
UNKNOWN_CREDENTIAL = "no host has this credential"
#: An agent that beat so recently is there; they beat every ten seconds at least.
RECENT_HEARTBEAT = timedelta(seconds=30)


def create_join_token(tx: Tx, *, auto_admit: bool) -> str:
    """Create a token for a host that the farm itself admits."""
    request = TokenRequest(auto_admit=auto_admit)
    return issue_join_token(tx.by("farm"), request).token


def issue_join_token(tx: Tx, request: TokenRequest, *, agents_url: str | None = None) -> NewJoinToken:
    """Issue a token that lets one agent enroll, once; shown this one time, stored as its hash.

    One that the caller drew is made once, however often it is asked for.

    Raises:
        InvalidInput: what the caller drew is no secret.
        IdempotencyKeyReused: it is the token of another request.
    """
    kind, valid_for = TokenKind.JOIN, timedelta(seconds=request.valid_s)
    token = new_secret(kind) if request.token is None else derive_secret(kind, request.token)
    join_token = join_tokens.find_join_token(tx, hash_of(token))
    if join_token is None:
        join_token = join_tokens.add_join_token(
            tx,
            token_hash=hash_of(token),
            auto_admit=request.auto_admit,
            valid_for=valid_for,
            host=request.host,
        )
    elif (join_token.auto_admit, join_token.host) != (request.auto_admit, request.host) or not _was_valid_for(
        join_token, valid_for, tx.now
    ):
        raise IdempotencyKeyReused(
            f"join token {join_token.token_id} was made by another request", hint=NOT_THE_SAME_HINT
        )
    return NewJoinToken(**dict(join_token), token=token, agents_url=agents_url)


def _was_valid_for(join_token: JoinToken, valid_for: timedelta, now: datetime) -> bool:
    """Tell whether it may have been issued for so long: where it was revoked, its time ended sooner.

    For an expired one the row does not say; its requester is told of a token that no longer enrolls.
    """
    until = join_token.created_at + valid_for
    return join_token.expires_at == until or join_token.expires_at <= min(now, until)


def revoke_join_token(tx: Tx, token_id: str) -> JoinToken:
    """Revoke a token: no host enrolls with it any more.

    Raises:
        NotFound: there is no such token.
        Conflict: it was used, or is too old already.
    """
    is_revoked = join_tokens.expire_join_token(tx, token_id)
    token = join_tokens.find_token_by_id(tx, token_id)
    if token is None:
        raise NotFound(f"there is no token {token_id}", hint="`farm token list` names them")
    if not is_revoked:
        by = f" by {token.used_by}" if token.used_by else ""
        raise Conflict(
            f"join token {token_id} is {token.state}{by} already",
            hint="a host that joined with it goes on: only its credential counts from then on",
        )
    return token


def check_join_token(tx: Tx, enrollment: Enrollment) -> None:
    """Refuse strangers by a read: a caller without a token must not keep writers waiting.

    Raises:
        AuthError: the token is unknown, used up, too old or another host's.
    """
    token_hash = hash_of(enrollment.join_token.get_secret_value())
    if not join_tokens.is_valid_token(tx, token_hash, HostId(enrollment.host)):
        raise _bad_join_token()


def enroll(tx: Tx, enrollment: Enrollment, *, known_as: HostId | None = None) -> EnrollmentAnswer:
    """Turn a join token into a host credential.

    `known_as` is the host whose present credential the caller has, if any: that one may always join again.

    Raises:
        AuthError: the token is unknown, used up, too old or another host's.
        Conflict: an agent of that name is at work, and the caller is not it; the token stays good.
    """
    host_id = HostId(enrollment.host)
    credential = new_secret(TokenKind.HOST)
    # The token's row refers to the host, so the host is there first; a bad token rolls it back.
    hosts.put_host(tx, host_id=host_id, credential_hash=hash_of(credential), auto_admit=False)
    auto_admit = join_tokens.use_join_token(
        tx, token_hash=hash_of(enrollment.join_token.get_secret_value()), host_id=host_id
    )
    if auto_admit is None:
        raise _bad_join_token()
    # An operator made the token: that lets a machine back in which another had taken out.
    reactivate_host(tx, host_id)
    # Only who has a good token learns which hosts there are; the refusal rolls its use back.
    if known_as != host_id:
        _check_name_is_free(tx, host_id)
    hosts.put_host(tx, host_id=host_id, credential_hash=hash_of(credential), auto_admit=auto_admit)
    return EnrollmentAnswer(host_id=host_id, credential=credential)


def _bad_join_token() -> AuthError:
    return AuthError(
        "the join token is unknown, used up, too old or another host's",
        hint="`farm token create` makes a new one; one that was made with --host NAME is for that host",
    )


def _check_name_is_free(tx: Tx, host_id: HostId) -> None:
    """Refuse a name in use: two machines of one name would each take the other's credential."""
    session = hosts.current_session(tx.connection, host_id)
    if session is not None and session.heartbeat_at > tx.now - RECENT_HEARTBEAT:
        raise Conflict(
            f"an agent called {host_id} is at work",
            hint="call this one otherwise (--host NAME); if it is this machine's, just stopped, try again in "
            f"{RECENT_HEARTBEAT.total_seconds():.0f} s",
        )


def authenticate(connection: Connection, credential: str) -> HostId:
    """Return the host that holds a credential.

    Looked up by its hash, so nothing of a credential can be learned from how long the answer takes.

    Raises:
        AuthError: no host has it.
    """
    host_id = hosts.find_host_by_credential(connection, hash_of(credential))
    if host_id is None:
        raise AuthError(UNKNOWN_CREDENTIAL)
    return host_id
