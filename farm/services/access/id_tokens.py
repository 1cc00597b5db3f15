"""Verify ID tokens of an identity provider (OpenID Connect Core 1.0, 3.1.3.7)."""

import secrets
from collections.abc import Mapping, Sequence
from typing import Any

import jwt

from farm.core.errors import AuthError, FarmError

#: Signatures by a private key of the provider: neither `none`, nor HMAC, whose key the farm would share.
ALGORITHMS = frozenset({"RS256", "RS384", "RS512", "ES256", "ES384", "ES512"})
#: How far the clocks of farm and provider may be apart.
LEEWAY_S = 60
COMPARE_HINT = "an operator of the farm compares the FARM_OIDC_ settings with the client at the provider"
_CLOCKS = "compare the clocks of the farm's machine and of the provider (`date -u`), then sign in again"


class KeyUnknownError(Exception):
    """The key of a token is not among those that are known."""


def verified_claims(
    token: str,
    *,
    keys: Sequence[Mapping[str, Any]],
    algorithms: frozenset[str],
    issuer: str,
    client_id: str,
    nonce: str | None,
) -> Mapping[str, Any]:
    """Return the claims of an ID token that is the provider's, for this farm, of now and of this sign-in.

    Args:
        token: in its compact form.
        keys: JSON web keys of the provider.
        algorithms: those that the provider announces.
        issuer: as the provider calls itself.
        client_id: the farm.
        nonce: of this sign-in; None where the flow has none.

    Raises:
        KeyUnknownError: no key has the name that the token says.
        AuthError: the token is not valid.
        FarmError: it is signed in a way that is not accepted.
    """
    try:
        header = jwt.get_unverified_header(token)
        algorithm = header.get("alg")
        if algorithm not in ALGORITHMS & algorithms:
            raise FarmError(
                f"the identity provider signs ID tokens by {algorithm!r:.20}, which this farm refuses",
                hint=f"have it sign by one of {', '.join(sorted(ALGORITHMS))}",
            )
        claims: dict[str, Any] = jwt.decode(
            token,
            jwt.PyJWK(dict(_key(keys, header.get("kid"), algorithm)), algorithm=algorithm),
            algorithms=[algorithm],
            audience=client_id,
            issuer=issuer,
            leeway=LEEWAY_S,
            options={"require": ["iss", "sub", "aud", "exp", "iat"]},
        )
    except (jwt.ExpiredSignatureError, jwt.ImmatureSignatureError) as error:
        raise AuthError(f"the ID token is not of this time: {error}", hint=_CLOCKS) from error
    except (jwt.PyJWTError, ValueError) as error:
        raise AuthError(
            f"the ID token is not valid: {error}",
            hint="sign in again; if it stays so, have the FARM_OIDC_ settings compared with the provider",
        ) from error
    _check_party(claims, client_id)
    if nonce is not None and not _is_same(claims.get("nonce"), nonce):
        raise AuthError("the ID token is of another sign-in: its nonce differs", hint="sign in again")
    return claims


def _check_party(claims: Mapping[str, Any], client_id: str) -> None:
    audiences = claims["aud"]
    is_for_others, party = isinstance(audiences, list) and len(audiences) > 1, claims.get("azp")
    if party != client_id and (party is not None or is_for_others):
        raise AuthError("the ID token was issued to another client than this farm", hint="sign in again")


def _is_same(claim: object, nonce: str) -> bool:
    return isinstance(claim, str) and secrets.compare_digest(claim.encode(errors="replace"), nonce.encode())


def _key(keys: Sequence[Mapping[str, Any]], kid: object, algorithm: str) -> Mapping[str, Any]:
    kind = "RSA" if algorithm.startswith("RS") else "EC"
    fitting = [key for key in keys if key.get("kty") == kind and key.get("use", "sig") == "sig"]
    for key in fitting:
        if key.get("kid") == kid or (kid is None and len(fitting) == 1):
            return key
    raise KeyUnknownError
