"""Secrets that authenticate callers: created once, shown once, stored as hashes."""

import hashlib
import re
import secrets
from datetime import timedelta
from enum import StrEnum

from farm.core.errors import InvalidInput

#: How long before a token expires its bearer is told. A new one takes an admin, who may be away for a week.
WARN_WITHIN = timedelta(days=14)


class TokenKind(StrEnum):
    """The kind of a secret, shown by its prefix."""

    #: One new host, once.
    JOIN = "bfj"
    #: One host's agent.
    HOST = "bfh"
    #: A person or a script.
    USER = "bfu"
    #: A browser that signed in.
    PAGE = "bfp"


#: 256 bits in base64url.
_BITS = re.compile(r"[A-Za-z0-9_-]{43}")
#: 43 letters drawn from 64 have fewer different ones less than once in 10**12 times; typed text often has.
_FEWEST_LETTERS = 16
#: Length of the part of its hash that identifies a token; it authenticates no one.
ID_LENGTH = 12


def new_secret(kind: TokenKind) -> str:
    """Return 256 random bits. The prefix shows the kind of a secret that is found somewhere."""
    return f"{kind}_{secrets.token_urlsafe(32)}"


def derive_secret(kind: TokenKind, secret: str) -> str:
    """Return a secret like those of `new_secret`, drawn by the requester.

    Raises:
        InvalidInput: it is none, or cannot have been drawn at random.
    """
    bits = secret.removeprefix(f"{kind}_")
    if bits == secret or not _BITS.fullmatch(bits) or len(set(bits)) < _FEWEST_LETTERS:
        raise InvalidInput(
            f"what was sent as a token are no 256 random bits behind {kind}_",
            hint="leave it out, and the farm draws one: 32 bytes of a random source, in base64url without =",
        )
    return secret


def hash_of(secret: str) -> str:
    """Return the stored hash of a secret. It has 256 random bits: a plain hash cannot be reversed."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def token_id_of(secret: str) -> str:
    """Return the id under which a token is listed."""
    return hash_of(secret)[:ID_LENGTH]
