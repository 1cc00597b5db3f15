"""The address of a mail server, and of those who get mail."""

import pytest

from farm.core.operations.mail_server import MailServer, mail_addresses, mail_server


def test_a_server_is_written_as_an_address() -> None:
    assert mail_server("smtp://ann:p%40ss@mail.example.org:587?from=farm@example.org") == MailServer(
        host="mail.example.org",
        port=587,
        is_tls=False,
        user="ann",
        password="p@ss",
        sender="farm@example.org",
    )
    plain = mail_server("smtps://mail.example.org")
    assert (plain.port, plain.is_tls, plain.user, plain.sender) == (465, True, None, None)
    assert "p@ss" not in repr(mail_server("smtp://ann:p%40ss@mail.example.org"))


@pytest.mark.parametrize("url", ["", "mail.example.org", "http://mail.example.org", "smtp://", "smtp://a/b"])
def test_what_is_no_server_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="it must look like smtp://"):
        mail_server(url)


def test_addresses_have_commas_between_them() -> None:
    assert mail_addresses("ann@example.org, ben@example.org") == ["ann@example.org", "ben@example.org"]


@pytest.mark.parametrize("text", ["", "ann", "ann@", "@example.org", "ann@a, b", "Ann <ann@example.org>"])
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is no mail address"):
        mail_addresses(text)
