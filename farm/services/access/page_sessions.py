"""Sign browsers in with an access token, once, and out; a revoked token ends its sessions."""

from datetime import timedelta

from farm.core.errors import AuthError
from farm.core.operations.role import Caller, Role
from farm.database.transaction import Tx
from farm.services.access.tokens import invalid_token
from farm.store.operations import access_tokens
from farm.wire.tokens import TokenKind, hash_of, new_secret

#: A working day: a browser that is left open overnight signs in again.
VALID_FOR = timedelta(hours=12)
#: A viewer changes nothing, and a screen on the wall has no one who signs in each morning.
VALID_FOR_VIEWER = timedelta(days=30)
SIGN_IN_AGAIN = "sign in again with an access token; `farm token create` makes one"


def sign_in(tx: Tx, token: str) -> str:
    """Begin a session, which ends with its token at the latest; return its secret, for a cookie.

    Raises:
        AuthError: the token is no valid one of a person or script.
    """
    token_hash = hash_of(token.strip())
    found = access_tokens.find_valid_token(tx, token_hash)
    if found is None:
        raise invalid_token(tx, token_hash)
    access_tokens.store_token_uses(tx, {token_hash: tx.now})
    secret = new_secret(TokenKind.PAGE)
    valid_for = VALID_FOR_VIEWER if found.role == Role.VIEWER else VALID_FOR
    if found.expires_at is not None:
        valid_for = min(valid_for, found.expires_at - tx.now)
    access_tokens.add_page_session(
        tx, session_hash=hash_of(secret), token_hash=token_hash, expires_at=tx.now + valid_for
    )
    return secret


def authenticate_session(tx: Tx, secret: str) -> Caller:
    """Return who signed in; constant in time as `authenticate_caller` is.

    Raises:
        AuthError: the session is over, or its token is no longer valid.
    """
    token_hash = access_tokens.find_token_of_session(tx, hash_of(secret))
    token = None if token_hash is None else access_tokens.find_valid_token(tx, token_hash)
    if token is None:
        raise AuthError("this session is over", hint=SIGN_IN_AGAIN)
    return Caller(name=token.name, role=token.role, is_authenticated=True)


def sign_out(tx: Tx, secret: str) -> None:
    """End a session, and the token that an identity provider's sign-in made for it."""
    session_hash = hash_of(secret)
    token = access_tokens.find_token_for_session(tx, session_hash)
    access_tokens.end_page_session(tx, session_hash)
    if token is not None:
        caller = Caller(name=token.name, role=token.role, is_authenticated=True)
        access_tokens.revoke_access_token(tx.by(caller.actor), token.token_id)
