"""The identity provider by which people sign in: asked when someone does, and never before."""

import asyncio
import json
import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote_plus, urlencode, urlsplit

import httpx

from farm.client.certificates import UNTRUSTED_HINT, is_untrusted, known_authorities
from farm.clock import Clock
from farm.core.base.address import is_loopback
from farm.core.errors import AuthError, FarmError, FarmFault
from farm.core.operations.sign_in import Identity, ProviderSettings, identity_of, secure_address
from farm.services.access.id_tokens import COMPARE_HINT, KeyUnknownError, verified_claims
from farm.services.access.sign_in_attempts import SignInAttempt
from farm.wire.documents.access import DeviceCode

#: How long what the provider says of itself, and its keys, are used; another key is asked for at once.
_KNOWN_FOR_S = 600.0
#: Of each answer, from the connection to its last byte.
_ANSWER_S = 10.0
_MAX_ANSWER_BYTES = 256 * 1024
#: Questions at a time: callers whom no one knows yet cause them.
_MAX_AT_ONCE = 16
_DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
#: RFC 8628, 3.2.
_DEFAULT_INTERVAL_S = 5
_MAX_SHOWN = 200
_AGAIN = "sign in again"


@dataclass(frozen=True, slots=True)
class NotYet:
    """The person has not answered yet."""

    is_too_fast: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Provider:
    """What the provider says of itself, and its keys."""

    metadata: Mapping[str, Any]
    keys: Sequence[Mapping[str, Any]]
    since_s: float

    def address(self, name: str) -> str:
        """Return the address of an endpoint.

        Raises:
            FarmError: it has none, or an insecure one.
        """
        address = self.metadata.get(name)
        try:
            return secure_address(address if isinstance(address, str) else "", has_query=True)
        except ValueError as error:
            raise _refused(f"the identity provider has no usable {name}: {address!r:.200}") from error

    def names(self, key: str, default: str) -> frozenset[str]:
        names = self.metadata.get(key)
        return frozenset(map(str, names)) if isinstance(names, list) else frozenset({default})


class IdentityProvider:
    """Signs people in by OpenID Connect, in two ways: through a browser, and by a code that a person enters.

    Invariant: an ID token is read only where the provider's own token endpoint sent it.
    """

    def __init__(self, settings: ProviderSettings, clock: Clock) -> None:
        """Prepare; nothing is sent yet."""
        self.settings = settings
        self._clock = clock
        self._known: _Provider | None = None
        self._asking = 0

    @property
    def label(self) -> str:
        """Return what people call the provider: its host."""
        return urlsplit(self.settings.issuer).netloc

    async def authorization_url(self, attempt: SignInAttempt, *, redirect_uri: str) -> str:
        """Return where a browser goes to sign in, and comes back from with a code.

        Raises:
            FarmFault: the provider does not answer.
            FarmError: it refuses the farm, or its answer cannot be used.
        """
        address = (await self._provider()).address("authorization_endpoint")
        query = {
            "response_type": "code",
            "client_id": self.settings.client_id,
            "scope": self.settings.scopes,
            "redirect_uri": redirect_uri,
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        return f"{address}{'&' if '?' in address else '?'}{urlencode(query)}"

    async def identify(self, code: str, attempt: SignInAttempt, *, redirect_uri: str) -> Identity:
        """Return who came back with a code.

        Raises:
            AuthError: the code, or the ID token that it stands for, is not valid.
            Forbidden: none of the person's groups has a role.
            FarmFault: the provider does not answer.
            FarmError: it refuses the farm, or its answer cannot be used.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": attempt.verifier,
        }
        answer = await self._post("token_endpoint", form)
        return await self._identity(_accepted(answer), nonce=attempt.nonce)

    async def authorize_device(self) -> DeviceCode:
        """Begin the sign-in of a program without a browser (RFC 8628).

        Raises:
            FarmFault: the provider does not answer.
            FarmError: it refuses the farm, has no such flow, or its answer cannot be used.
        """
        answer = _accepted(await self._post("device_authorization_endpoint", {"scope": self.settings.scopes}))
        complete = answer.get("verification_uri_complete")
        try:
            return DeviceCode(
                device_code=_text(answer["device_code"]),
                user_code=_text(answer["user_code"]),
                address=_text(answer["verification_uri"]),
                complete_address=None if complete is None else _text(complete),
                valid_s=int(answer["expires_in"]),
                interval_s=max(1, int(answer.get("interval", _DEFAULT_INTERVAL_S))),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _refused(f"the identity provider gave no code to enter: {error!r:.200}") from error

    async def identify_device(self, device_code: str) -> Identity | NotYet:
        """Return who entered the code of a program; raises as `identify`."""
        answer = await self._post("token_endpoint", {"grant_type": _DEVICE_GRANT, "device_code": device_code})
        if (waits := answer.get("error")) in ("authorization_pending", "slow_down"):
            return NotYet(is_too_fast=waits == "slow_down")
        return await self._identity(_accepted(answer), nonce=None)

    async def _identity(self, answer: Mapping[str, Any], *, nonce: str | None) -> Identity:
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise _refused("the identity provider sent no ID token")
        try:
            claims = self._claims(await self._provider(), token, nonce)
        except KeyUnknownError:
            # Providers change their keys.
            self._known = None
            try:
                claims = self._claims(await self._provider(), token, nonce)
            except KeyUnknownError as error:
                raise AuthError(
                    "the ID token is signed by a key that the identity provider does not publish", hint=_AGAIN
                ) from error
        settings = self.settings
        if settings.groups_claim not in claims:
            claims = {**claims, **await self._groups(answer.get("access_token"), claims.get("sub"))}
        return identity_of(
            claims, issuer=settings.issuer, groups_claim=settings.groups_claim, roles=settings.roles
        )

    async def _groups(self, access_token: object, subject: object) -> Mapping[str, Any]:
        """Return the claim of groups from the userinfo (OpenID Connect Core, 5.3), if it is there.

        Nothing else is taken from there: the ID token says who the person is.
        """
        provider = await self._provider()
        if "userinfo_endpoint" not in provider.metadata or not isinstance(access_token, str):
            return {}
        bearer = f"Bearer {_text(access_token)}"
        url = provider.address("userinfo_endpoint")
        info = _accepted(await self._ask("GET", url, authorization=bearer))
        # 5.3.2: an answer about someone else must not be used.
        if info.get("sub") != subject:
            raise AuthError("the identity provider's userinfo is that of someone else", hint=_AGAIN)
        groups_claim = self.settings.groups_claim
        return {groups_claim: info[groups_claim]} if groups_claim in info else {}

    def _claims(self, provider: _Provider, token: str, nonce: str | None) -> Mapping[str, Any]:
        return verified_claims(
            token,
            keys=provider.keys,
            algorithms=provider.names("id_token_signing_alg_values_supported", "RS256"),
            issuer=self.settings.issuer,
            client_id=self.settings.client_id,
            nonce=nonce,
        )

    async def _provider(self) -> _Provider:
        now_s = self._clock.monotonic()
        if self._known is not None and now_s - self._known.since_s < _KNOWN_FOR_S:
            return self._known
        issuer = self.settings.issuer
        metadata = await self._ask("GET", f"{issuer.rstrip('/')}/.well-known/openid-configuration")
        if metadata.get("issuer") != issuer:
            raise _refused(
                f"the identity provider at {issuer} calls itself {metadata.get('issuer')!r:.200}",
                hint="an operator of the farm sets FARM_OIDC_ISSUER to the very name that the provider uses",
            )
        provider = _Provider(metadata=metadata, keys=(), since_s=now_s)
        keys = (await self._ask("GET", provider.address("jwks_uri"))).get("keys")
        usable = [key for key in keys if isinstance(key, dict)] if isinstance(keys, list) else []
        self._known = _Provider(metadata=metadata, keys=usable, since_s=now_s)
        return self._known

    async def _post(self, endpoint: str, form: Mapping[str, str]) -> Mapping[str, Any]:
        """Ask as the farm: by its secret, as the provider wants to get it, or as a public client."""
        provider = await self._provider()
        address, settings = provider.address(endpoint), self.settings
        by_form = {"client_id": settings.client_id}
        if settings.client_secret is None:
            return await self._ask("POST", address, {**form, **by_form})
        ways = provider.names("token_endpoint_auth_methods_supported", "client_secret_basic")
        if "client_secret_basic" not in ways:
            return await self._ask(
                "POST", address, {**form, **by_form, "client_secret": settings.client_secret}
            )
        # RFC 6749, 2.3.1: both are encoded as in a form.
        pair = f"{quote_plus(settings.client_id)}:{quote_plus(settings.client_secret)}"
        return await self._ask("POST", address, form, f"Basic {b64encode(pair.encode()).decode()}")

    async def _ask(
        self, method: str, url: str, form: Mapping[str, str] | None = None, authorization: str | None = None
    ) -> Mapping[str, Any]:
        """Return the JSON object that an address answers, also with an error of OAuth.

        Raises:
            FarmFault: no answer in time, or too many questions are open.
            FarmError: the answer is no such object.
        """
        if self._asking >= _MAX_AT_ONCE:
            raise _down("too many people sign in at this moment", hint="try again in a minute")
        headers = {"Accept": "application/json"}
        if authorization is not None:
            headers["Authorization"] = authorization
        self._asking += 1
        try:
            async with (
                asyncio.timeout(_ANSWER_S),
                httpx.AsyncClient(
                    verify=self._certificates,
                    trust_env=not is_loopback(urlsplit(url).hostname or ""),
                    timeout=_ANSWER_S,
                ) as http,
                http.stream(method, url, data=form, headers=headers) as answer,
            ):
                return await _document(url, answer)
        except (httpx.HTTPError, httpx.InvalidURL, TimeoutError) as error:
            reason = str(error) or type(error).__name__
            raise _down(
                f"the identity provider {self.label} does not answer: {reason:.200}",
                hint=UNTRUSTED_HINT if is_untrusted(error) else None,
            ) from error
        finally:
            self._asking -= 1

    @cached_property
    def _certificates(self) -> ssl.SSLContext:
        return known_authorities()


async def _document(url: str, answer: httpx.Response) -> Mapping[str, Any]:
    if answer.status_code >= 500:
        raise _down(f"the identity provider answers {answer.status_code} at {url}")
    body = b""
    async for piece in answer.aiter_bytes():
        body += piece
        if len(body) > _MAX_ANSWER_BYTES:
            raise _refused(f"{url} answers more than {_MAX_ANSWER_BYTES} bytes")
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict) or not (answer.is_success or "error" in document):
        raise _refused(f"{url} answers {answer.status_code}, and nothing of an identity provider's")
    return document


def _accepted(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return an answer that is no error of OAuth (RFC 6749, 5.2; RFC 8628, 3.5).

    Raises:
        AuthError: the person refused, or took too long.
        FarmError: the farm is refused.
    """
    match answer.get("error"):
        case None:
            return answer
        case "invalid_grant" | "expired_token":
            raise AuthError(
                "the identity provider no longer accepts this sign-in: its code has expired or was used",
                hint=_AGAIN,
            )
        case "access_denied":
            raise AuthError("the sign-in was refused at the identity provider", hint=_AGAIN)
        case error:
            said = f"{error}: {answer.get('error_description', '')}".rstrip(": ")
            raise _refused(f"the identity provider refuses this farm: {said[:_MAX_SHOWN]}")


def _text(value: object) -> str:
    """Return a word of printable ASCII: it is shown in terminals.

    Raises:
        ValueError: it is none.
    """
    if not isinstance(value, str) or not value or any(not " " <= letter <= "~" for letter in value):
        raise ValueError(f"{value!r:.50} is no printable text")
    return value


def _down(message: str, hint: str | None = None) -> FarmFault:
    return FarmFault(
        message, hint=hint or "try again in a minute; an access token works without the provider"
    )


def _refused(message: str, hint: str = COMPARE_HINT) -> FarmError:
    return FarmError(message, hint=hint)
