"""One attempt of a browser to sign in by an identity provider: bound to it by a secret in its cookie."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from dataclasses import dataclass, field

from farm.core.errors import AuthError


@dataclass(frozen=True, slots=True)
class SignInAttempt:
    """The values that a sign-in shows to the provider, made from the secret of one browser.

    No process of the farm keeps anything of it; none of the values leads to another one.
    """

    secret: str = field(repr=False)

    @property
    def state(self) -> str:
        """Return what the browser comes back with."""
        return self._derived("state")

    @property
    def nonce(self) -> str:
        """Return what the ID token must contain."""
        return self._derived("nonce")

    @property
    def verifier(self) -> str:
        """Return what proves to the provider that who began asks for the token (RFC 7636)."""
        return self._derived("verifier")

    @property
    def challenge(self) -> str:
        """Return what the provider compares the verifier with (S256)."""
        return _encoded(hashlib.sha256(self.verifier.encode()).digest())

    def check(self, state: str) -> None:
        """Compare a state with that of this browser.

        Raises:
            AuthError: it is of another attempt, or of another browser.
        """
        if not self.secret or not secrets.compare_digest(state.encode(), self.state.encode()):
            raise AuthError(
                "this browser began no such sign-in, or ended it already", hint="sign in again from this page"
            )

    def _derived(self, purpose: str) -> str:
        return _encoded(hashlib.sha256(f"{purpose} {self.secret}".encode()).digest())


def new_attempt() -> SignInAttempt:
    """Return an attempt with 256 random bits."""
    return SignInAttempt(secrets.token_urlsafe(32))


def _encoded(digest: bytes) -> str:
    return urlsafe_b64encode(digest).decode().rstrip("=")
