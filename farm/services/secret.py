"""Secrets that let somebody in: made once, said once, kept as their hashes."""

import hashlib
import secrets
from enum import StrEnum


class SecretKind(StrEnum):
    """What a secret lets in, as its first letters say."""

    #: One new host, once.
    JOIN = "bfj"
    #: One host's agent.
    HOST = "bfh"
    #: A person or a script.
    USER = "bfu"


def new_secret(kind: SecretKind) -> str:
    """256 random bits. What they begin with says what was found when one turns up somewhere."""
    return f"{kind}_{secrets.token_urlsafe(32)}"


def hash_of(secret: str) -> str:
    """What is kept of a secret. It is 256 random bits of ours: a plain hash cannot be guessed back."""
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()
