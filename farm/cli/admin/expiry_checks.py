"""Checks of `farm doctor --farm`: which certificate and access tokens are about to expire."""

from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

from cryptography.x509 import load_pem_x509_certificate

from farm.config import FarmConfig
from farm.core.errors import Blame
from farm.core.operations.diagnostic import Diagnostic, ok, problem, warning
from farm.core.operations.sign_in import PROVIDER_ACTOR
from farm.database.transaction import Tx
from farm.store.operations.access_tokens import list_access_tokens
from farm.wire.documents.access import AccessState, AccessToken
from farm.wire.tokens import WARN_WITHIN

_MOST_TOKENS = 10_000
_RENEW_HINT = "renew the file that FARM_TLS_CERT names; a running farm reads it again automatically"


def check_certificate(config: FarmConfig, now: datetime) -> list[Diagnostic]:
    """Check until when the farm's certificate is valid; nothing on a farm without one."""
    if config.tls_cert is None:
        return []
    try:
        until = certificate_end(config.tls_cert)
    except (OSError, ValueError) as error:
        message = f"{config.tls_cert} cannot be read: {error}"
        return [problem("certificate", message, _RENEW_HINT, blame=Blame.FARM)]
    text = f"{until:%Y-%m-%d %H:%M} UTC"
    if until <= now:
        return [problem("certificate", f"expired at {text}", _RENEW_HINT, blame=Blame.FARM)]
    if until <= now + WARN_WITHIN:
        return [warning("certificate", f"expires at {text}", _RENEW_HINT)]
    return [ok("certificate", f"valid until {text}")]


def certificate_end(path: Path) -> datetime:
    """Return when the first certificate of a PEM file, that of the server, expires.

    Raises:
        OSError: it cannot be read.
        ValueError: it has no certificate.
    """
    return load_pem_x509_certificate(path.read_bytes()).not_valid_after_utc


def check_tokens(tokens: Iterable[AccessToken], now: datetime) -> list[Diagnostic]:
    """Name the valid tokens that expire soon; those of an identity provider last a working day by design."""
    return [
        warning(
            "access tokens",
            f"{token.token_id} of {token.name} expires at {token.expires_at:%Y-%m-%d %H:%M} UTC",
            f"farm token rotate {token.token_id}",
        )
        for token in tokens
        if token.state is AccessState.OPEN
        and token.expires_at is not None
        and token.expires_at <= now + WARN_WITHIN
        and not token.created_by.startswith(PROVIDER_ACTOR)
    ]


def read_tokens(tx: Tx) -> list[AccessToken]:
    """Return the access tokens of a farm."""
    return list_access_tokens(tx, after="", limit=_MOST_TOKENS)
