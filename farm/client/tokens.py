"""Calls about access tokens of people and join tokens of hosts."""

from typing import TypeVar
from urllib.parse import quote

from farm.client.connection import FarmConnection
from farm.wire.documents.access import AccessRequest, AccessTokenView, CallerView, NewAccessTokenView
from farm.wire.documents.join_tokens import NewTokenView, TokenRequest, TokenView
from farm.wire.tokens import TokenKind, new_secret, token_id_of

T = TypeVar("T")


class TokenCalls(FarmConnection):
    """A part of `farm.client.farm_client.FarmClient`, with the same time-outs and errors."""

    def create_token(self, request: TokenRequest) -> NewTokenView:
        """Create a join token, once; only this response shows its secret."""
        return self._create(NewTokenView, "/tokens", request, TokenKind.JOIN)

    def tokens(self) -> list[TokenView]:
        return self._get(list[TokenView], "/tokens")

    def revoke_token(self, token_id: str) -> TokenView:
        """Revoke a join token."""
        return self._delete(TokenView, f"/tokens/{quote(token_id, safe='')}")

    def caller(self) -> CallerView:
        """Return whom the farm takes this client for."""
        return self._get(CallerView, "/caller")

    def create_access_token(self, request: AccessRequest) -> NewAccessTokenView:
        """Create an access token, once; only this response shows its secret."""
        return self._create(NewAccessTokenView, "/access-tokens", request, TokenKind.USER)

    def access_tokens(self) -> list[AccessTokenView]:
        return self._get(list[AccessTokenView], "/access-tokens")

    def revoke_access_token(self, token_id: str) -> AccessTokenView:
        """Revoke an access token."""
        return self._delete(AccessTokenView, f"/access-tokens/{quote(token_id, safe='')}")

    def _create(self, kind: type[T], path: str, request: TokenRequest | AccessRequest, drawn: TokenKind) -> T:
        """Create a token with a secret drawn here: a request that is repeated is for the same token."""
        token = request.token or new_secret(drawn)
        token_id = token_id_of(token)
        body = request.model_copy(update={"token": token}).model_dump(mode="json")
        hint = f"it may have been created nevertheless, as {token_id}: `farm token revoke {token_id}` ends it"
        return self._post_once(kind, path, body, lost_hint=hint)
