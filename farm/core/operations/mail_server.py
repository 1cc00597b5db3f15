"""The address of a mail server, as settings write it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from urllib.parse import parse_qs, unquote, urlsplit

_PORT_BY_SCHEME = {"smtp": 25, "smtps": 465}


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """A server that takes mail."""

    host: str
    port: int
    #: TLS from the first byte; otherwise STARTTLS where the server offers it.
    is_tls: bool
    user: str | None
    password: str | None = field(repr=False)
    #: The address that mail comes from; None: a name of this machine.
    sender: str | None


def mail_server(url: str) -> MailServer:
    """Parse `smtp://user:password@host:587?from=farm@example.org`.

    Raises:
        ValueError: it is none.
    """
    parts = urlsplit(url)
    if parts.scheme not in _PORT_BY_SCHEME or not parts.hostname or parts.path not in ("", "/"):
        raise ValueError("it must look like smtp://user:password@host:587?from=farm@example.org")
    (sender,) = parse_qs(parts.query).get("from", [None])[-1:]
    return MailServer(
        host=parts.hostname,
        port=parts.port or _PORT_BY_SCHEME[parts.scheme],
        is_tls=parts.scheme == "smtps",
        user=None if parts.username is None else unquote(parts.username),
        password=None if parts.password is None else unquote(parts.password),
        sender=sender if sender is None else mail_addresses(sender)[0],
    )


def mail_addresses(text: str) -> Sequence[str]:
    """Parse addresses with commas between them.

    Raises:
        ValueError: one of them is no address.
    """
    addresses = [part.strip() for part in text.split(",")]
    for address in addresses:
        name, _, domain = address.partition("@")
        if not name or not domain or any(letter.isspace() or letter in "<>@" for letter in name + domain):
            raise ValueError(f"{address!r} is no mail address")
    return addresses
