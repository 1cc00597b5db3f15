"""Create, list, revoke and verify access tokens of people and scripts."""

from datetime import timedelta

from farm.core.errors import AuthError, Conflict, IdempotencyKeyReused, InvalidInput, NotFound, TokenExpired
from farm.core.operations.role import Caller, Role
from farm.core.operations.sign_in import PROVIDER_ACTOR
from farm.database.transaction import Tx
from farm.services.access.enrollment import NOT_THE_SAME_HINT
from farm.store.hosts import hosts
from farm.store.operations import access_tokens
from farm.wire.documents.access import (
    AccessRequest,
    AccessState,
    AccessToken,
    NewAccessToken,
    RotationRequest,
    SignInEnd,
)
from farm.wire.tokens import TokenKind, derive_secret, hash_of, new_secret, token_id_of

ASK_AN_ADMIN = (
    "an admin of this farm makes a new one: farm token create --role ROLE --name NAME --out FILE; "
    "`farm login URL --token-file FILE` keeps it"
)


def issue_access_token(tx: Tx, request: AccessRequest, *, replaces: str = "") -> NewAccessToken:
    """Issue a token that proves a name and a role; shown this one time, stored as its hash.

    `replaces` is the id of the token that it is in place of, for the event log.

    One that the caller drew is made once, however often it is asked for.

    Raises:
        InvalidInput: what the caller drew is no secret.
        IdempotencyKeyReused: it is the token of another request.
    """
    kind = TokenKind.USER
    valid_for = None if request.valid_s is None else timedelta(seconds=request.valid_s)
    token = new_secret(kind) if request.token is None else derive_secret(kind, request.token)
    row = access_tokens.find_token(tx, hash_of(token))
    if row is None:
        # A caller who draws many can find two of one name, and neither could be revoked by it.
        if access_tokens.find_access_token(tx, token_id_of(token)) is not None:
            raise IdempotencyKeyReused(
                f"there is an access token {token_id_of(token)} already", hint=NOT_THE_SAME_HINT
            )
        row = access_tokens.add_access_token(
            tx,
            token_hash=hash_of(token),
            name=request.name,
            role=request.role,
            valid_for=valid_for,
            replaces=replaces,
        )
    elif not _is_same_request(row, request, tx.actor, valid_for):
        raise IdempotencyKeyReused(
            f"access token {row.token_id} was made by another request", hint=NOT_THE_SAME_HINT
        )
    return NewAccessToken(**dict(row), token=token)


def _is_same_request(
    row: AccessToken, request: AccessRequest, actor: str, valid_for: timedelta | None
) -> bool:
    same = (row.name, row.role, row.created_by) == (request.name, request.role, actor)
    return same and valid_for == (None if row.expires_at is None else row.expires_at - row.created_at)


def rotate_access_token(tx: Tx, token_id: str, request: RotationRequest) -> NewAccessToken:
    """Issue a token with the name and role of a valid one, and let the old one expire.

    Raises:
        NotFound: there is no such token.
        Conflict: it was revoked, or is too old already.
        InvalidInput, IdempotencyKeyReused: as `issue_access_token`.
    """
    old = _get_access_token(tx, token_id)
    if old.state is not AccessState.OPEN:
        raise Conflict(f"access token {token_id} is {old.state} already", hint=ASK_AN_ADMIN)
    new = issue_access_token(
        tx,
        AccessRequest(name=old.name, role=old.role, valid_s=request.valid_s, token=request.token),
        replaces=token_id,
    )
    access_tokens.shorten_token(tx, token_id, tx.now + timedelta(seconds=request.grace_s))
    return new


def revoke_access_token(tx: Tx, token_id: str) -> AccessToken:
    """Revoke a token: the next call with it is refused.

    Raises:
        NotFound: there is no such token.
        Conflict: it was revoked, or is too old already.
    """
    is_revoked = access_tokens.revoke_access_token(tx, token_id)
    row = _get_access_token(tx, token_id)
    if not is_revoked:
        raise Conflict(f"access token {token_id} is {row.state} already", hint="no one gets in with it")
    return row


def end_sign_in(tx: Tx, credential: str) -> SignInEnd:
    """Revoke a token that the identity provider's sign-in gave to one person's machine; others stay."""
    token = access_tokens.find_valid_token(tx, hash_of(credential))
    if token is None or not token.created_by.startswith(PROVIDER_ACTOR):
        return SignInEnd(is_revoked=False)
    return SignInEnd(is_revoked=access_tokens.revoke_access_token(tx, token.token_id))


def _get_access_token(tx: Tx, token_id: str) -> AccessToken:
    row = access_tokens.find_access_token(tx, token_id)
    if row is None:
        raise NotFound(f"there is no access token {token_id}", hint="`farm token list` names them")
    return row


def authenticate_caller(tx: Tx, credential: str) -> Caller:
    """Return who has a secret: a person or script, or a host's agent, which may do nothing that people do.

    Constant in time by design: a secret is looked up by its hash, and no caller can choose what a hash begins
    with, so nothing of one can be learned from how long the answer takes.

    Raises:
        AuthError: no row has it, or it is too old, or was revoked.
    """
    token_hash = hash_of(credential)
    token = access_tokens.find_valid_token(tx, token_hash)
    if token is not None:
        # Those of an identity provider last a working day.
        is_of_a_sign_in = token.created_by.startswith(PROVIDER_ACTOR)
        return Caller(
            name=token.name,
            role=token.role,
            is_authenticated=True,
            token_expires_at=None if is_of_a_sign_in else token.expires_at,
        )
    host_id = hosts.find_host_by_credential(tx.connection, token_hash)
    if host_id is None:
        raise invalid_token(tx, token_hash)
    return Caller(name=host_id, role=Role.AGENT, is_authenticated=True)


def invalid_token(tx: Tx, token_hash: str) -> AuthError:
    """Return the error for a token that is not valid; who has its secret is told whether it expired."""
    token = access_tokens.find_token(tx, token_hash)
    if token is None or token.state is not AccessState.EXPIRED:
        return AuthError("the access token is unknown, too old or revoked", hint=ASK_AN_ADMIN)
    is_of_a_sign_in = token.created_by.startswith(PROVIDER_ACTOR)
    return TokenExpired(
        f"access token {token.token_id} of {token.name} expired at {token.expires_at:%Y-%m-%d %H:%M} UTC",
        hint="`farm login URL` signs you in again" if is_of_a_sign_in else ASK_AN_ADMIN,
    )


def check_an_admin_has_a_token(tx: Tx) -> None:
    """Refuse to serve others before an admin has had a token.

    One that has expired suffices: a farm starts again while no one is there, and serves everyone else.

    Raises:
        InvalidInput: no admin has a token that was not revoked.
    """
    if not access_tokens.has_token(tx, Role.ADMIN):
        raise InvalidInput(
            "no one could call this farm: every caller needs an access token, and no admin has one",
            hint="make one: farm token create --role admin --name NAME --out FILE --data FOLDER, with the"
            " data folder of this farm",
        )
