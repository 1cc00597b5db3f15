"""Sign people in whom an identity provider identified: with an access token of a working day."""

from itertools import count

from farm.core.operations.sign_in import Identity, numbered
from farm.database.transaction import Tx
from farm.services.access.page_sessions import VALID_FOR, sign_in
from farm.services.access.tokens import issue_access_token
from farm.store.operations import access_tokens
from farm.wire.documents.access import AccessRequest, NewAccessToken


def sign_in_person(tx: Tx, person: Identity) -> NewAccessToken:
    """Issue an access token to a person.

    They keep the name of their first token here. That was one which no token had before, of anyone.
    """
    name = access_tokens.find_name_of(tx, person.actor) or next(
        name
        for number in count(1)
        if not access_tokens.is_name_used(tx, name := numbered(person.called, number))
    )
    request = AccessRequest(name=name, role=person.role, valid_s=int(VALID_FOR.total_seconds()))
    return issue_access_token(tx.by(person.actor), request)


def sign_in_browser(tx: Tx, person: Identity) -> tuple[str, NewAccessToken]:
    """Begin a person's session on the pages; return its secret, for a cookie, and its access token."""
    token = sign_in_person(tx, person)
    return sign_in(tx, token.token), token
