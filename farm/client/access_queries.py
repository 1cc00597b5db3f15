"""Tokens and the caller, by the connection of a client."""

from typing import TypeVar
from urllib.parse import quote

from farm.client.connection import FarmConnection
from farm.wire.documents.access import (
    AccessRequest,
    AccessToken,
    CallerView,
    DeviceCode,
    DeviceSignIn,
    JoinToken,
    NewAccessToken,
    NewJoinToken,
    RotationRequest,
    SignInEnd,
    TokenRequest,
)
from farm.wire.tokens import TokenKind, new_secret, token_id_of

T = TypeVar("T")


class AccessQueries(FarmConnection):
    """What a client sends and asks for tokens."""

    def create_token(self, request: TokenRequest) -> NewJoinToken:
        """Create a join token, once; only this response shows its secret."""
        return self._create(NewJoinToken, "/tokens", request, TokenKind.JOIN)

    def tokens(self) -> list[JoinToken]:
        return self._list(list[JoinToken], "/tokens", lambda token: token.token_id)

    def revoke_token(self, token_id: str) -> JoinToken:
        """Revoke a join token."""
        return self._delete(JoinToken, f"/tokens/{quote(token_id, safe='')}")

    def caller(self) -> CallerView:
        """Return the caller as the farm identifies this client."""
        return self._get(CallerView, "/caller")

    def create_access_token(self, request: AccessRequest) -> NewAccessToken:
        """Create an access token, once; only this response shows its secret."""
        return self._create(NewAccessToken, "/access-tokens", request, TokenKind.USER)

    def rotate_access_token(self, token_id: str, request: RotationRequest) -> NewAccessToken:
        """Create a token in place of another; only this response shows its secret."""
        path = f"/access-tokens/{quote(token_id, safe='')}/rotation"
        return self._create(NewAccessToken, path, request, TokenKind.USER)

    def access_tokens(self) -> list[AccessToken]:
        return self._list(list[AccessToken], "/access-tokens", lambda token: token.token_id)

    def revoke_access_token(self, token_id: str) -> AccessToken:
        """Revoke an access token."""
        return self._delete(AccessToken, f"/access-tokens/{quote(token_id, safe='')}")

    def begin_sign_in(self) -> DeviceCode:
        """Begin a sign-in by the identity provider of the farm.

        Raises:
            NotFound, AuthError: the farm has none, or is of an earlier release.
        """
        return self._post(DeviceCode, "/sign-in/device", {})

    def ask_for_sign_in(self, device_code: str) -> DeviceSignIn:
        """Return the token of the person who entered a code, or that none has yet."""
        return self._post(DeviceSignIn, "/sign-in/device/token", {"device_code": device_code})

    def end_sign_in(self) -> SignInEnd:
        """Revoke the token of this client, if it is of a sign-in by the identity provider."""
        return self._delete(SignInEnd, "/sign-in")

    def _create(
        self,
        kind: type[T],
        path: str,
        request: TokenRequest | AccessRequest | RotationRequest,
        drawn: TokenKind,
    ) -> T:
        """Create a token with a secret drawn here: a request that is repeated is for the same token."""
        token = request.token or new_secret(drawn)
        token_id = token_id_of(token)
        body = request.model_copy(update={"token": token}).model_dump(mode="json")
        hint = f"it may have been created nevertheless, as {token_id}: `farm token revoke {token_id}` ends it"
        return self._post_once(kind, path, body, lost_hint=hint)
