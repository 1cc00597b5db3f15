"""A small identity provider on loopback whose ID tokens can be wrong, and which has the flow for devices.

What the provider from PyPI has not: `mock_provider` runs that one.
"""

import hashlib
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from html import escape
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from tests.support.farm.http_farm import served

CLIENT, SECRET = "benchfarm", "s3cr&t:%"
ROLES = "ml-ops=operator,ml=submitter,everyone=viewer"


def new_key() -> RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def _first_key() -> RSAPrivateKey:
    """The key of every provider at first: making one takes long."""
    return new_key()


class Provider:
    """Signs its one person in at once; tests change what it says."""

    def __init__(self) -> None:
        self.url = ""
        self.key, self.kid, self.algorithm = _first_key(), "first", "RS256"
        #: What tokens are signed with; None: the key that is published.
        self.signing_key: Any = None
        self.claims: dict[str, Any] = {"sub": "248", "preferred_username": "ann", "groups": ["ml"]}
        self.metadata: dict[str, Any] = {}
        #: What the userinfo says; None: the provider has none.
        self.userinfo: dict[str, Any] | None = None
        #: Answers of the token endpoint to the flow for devices, before a token.
        self.device_errors: list[str] = []
        self.client_secret: str | None = SECRET
        self.is_down = False
        #: Whether a person clicks something before they come back.
        self.asks_people = False
        #: Code or device code -> challenge and nonce; each is good once.
        self.codes: dict[str, tuple[str | None, str | None]] = {}
        self.asked: list[str] = []
        self.app = Starlette(
            routes=[
                Route("/.well-known/openid-configuration", self.discovery),
                Route("/keys", self.keys),
                Route("/authorize", self.authorize),
                Route("/device", self.device, methods=["POST"]),
                Route("/token", self.token, methods=["POST"]),
                Route("/userinfo", self.info),
            ]
        )

    async def discovery(self, _: Request) -> Response:
        self.asked.append("discovery")
        if self.is_down:
            return Response("maintenance", status_code=503)
        endpoints = {
            "authorization_endpoint": "authorize",
            "token_endpoint": "token",
            "jwks_uri": "keys",
            "device_authorization_endpoint": "device",
        }
        if self.userinfo is not None:
            endpoints["userinfo_endpoint"] = "userinfo"
        return JSONResponse(
            {
                "issuer": self.url,
                **{name: f"{self.url}/{path}" for name, path in endpoints.items()},
                "id_token_signing_alg_values_supported": ["RS256", "HS256", "none"],
                **self.metadata,
            }
        )

    async def keys(self, _: Request) -> Response:
        self.asked.append("keys")
        public = jwt.algorithms.RSAAlgorithm.to_jwk(self.key.public_key(), as_dict=True)
        return JSONResponse({"keys": [{**public, "kid": self.kid, "use": "sig"}]})

    async def authorize(self, request: Request) -> Response:
        asked = request.query_params
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = f"code-{len(self.codes)}"
        self.codes[code] = asked["code_challenge"], asked["nonce"]
        query = urlencode({"code": code, "state": asked["state"]})
        back = f"{asked['redirect_uri']}?{query}"
        if self.asks_people:
            return HTMLResponse(f'<!doctype html><title>Provider</title><a href="{escape(back)}">Agree</a>')
        return RedirectResponse(back, status_code=302)

    async def device(self, request: Request) -> Response:
        form = await self.form(request)
        if form is None:
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        self.codes["device-1"] = None, None
        return JSONResponse(
            {
                "device_code": "device-1",
                "user_code": "WDJB-MJHT",
                "verification_uri": f"{self.url}/enter",
                "expires_in": 60,
                "interval": 1,
            }
        )

    async def token(self, request: Request) -> Response:
        form = await self.form(request)
        if form is None:
            return JSONResponse({"error": "invalid_client"}, status_code=401)
        if "device_code" in form and self.device_errors:
            return JSONResponse({"error": self.device_errors.pop(0)}, status_code=400)
        challenge, nonce = self.codes.pop(form.get("code") or form.get("device_code", ""), ("none", None))
        if challenge is not None and challenge != _challenge(form.get("code_verifier", "")):
            return JSONResponse({"error": "invalid_grant"}, status_code=400)
        return JSONResponse({"token_type": "Bearer", "access_token": "x", "id_token": self.id_token(nonce)})

    async def info(self, request: Request) -> Response:
        self.asked.append("userinfo")
        if request.headers.get("authorization") != "Bearer x":
            return JSONResponse({"error": "invalid_token"}, status_code=401)
        return JSONResponse(self.userinfo)

    async def form(self, request: Request) -> dict[str, str] | None:
        """The fields of a request of the farm; None if it does not prove who it is."""
        form = {name: values[-1] for name, values in parse_qs((await request.body()).decode()).items()}
        if self.client_secret is None:
            return form if form.get("client_id") == CLIENT else None
        if "client_secret_post" in self.metadata.get("token_endpoint_auth_methods_supported", ()):
            return form if (form.get("client_id"), form.get("client_secret")) == (CLIENT, SECRET) else None
        basic = b64encode(f"{CLIENT}:{quote_plus(SECRET)}".encode()).decode()
        return form if request.headers.get("authorization") == f"Basic {basic}" else None

    def id_token(self, nonce: str | None) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "nonce": nonce, **self.claims}
        present = {name: value for name, value in claims.items() if value is not None}
        key = self.key if self.signing_key is None else self.signing_key
        return jwt.encode(present, key, algorithm=self.algorithm, headers={"kid": self.kid})


def _challenge(verifier: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).decode().rstrip("=")


@contextmanager
def running_provider() -> Iterator[Provider]:
    provider = Provider()
    with served(provider.app, lifespan="off") as (provider.url, _):
        yield provider
