"""HTTPS of a listener: who is served, a renewed certificate, and connections that never shake hands."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import trustme
from fastapi import FastAPI
from structlog.testing import capture_logs

from farm.api.http.connection_limits import ConnectionLimits
from farm.api.http.server import TlsProtocol, bind_socket, serve, url_of
from farm.api.http.tls import TlsCertificate
from farm.core.errors import InvalidInput

pytestmark = pytest.mark.anyio


@dataclass(frozen=True, slots=True)
class Authority:
    """An authority that nobody but this test trusts, and the files of a farm's certificate."""

    folder: Path
    ca: trustme.CA

    @property
    def certificate(self) -> Path:
        return self.folder / "farm.pem"

    @property
    def key(self) -> Path:
        return self.folder / "farm.key"

    def renew(self) -> bytes:
        """Write a new certificate; return it as DER."""
        issued = self.ca.issue_cert("127.0.0.1", "localhost")
        issued.cert_chain_pems[0].write_to_path(self.certificate)
        issued.private_key_pem.write_to_path(self.key)
        return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())

    def trusting(self) -> ssl.SSLContext:
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        return context


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path, trustme.CA())
    made.renew()
    return made


def create_app() -> FastAPI:
    app = FastAPI()

    @app.get("/")
    def answer() -> str:
        return "yes"

    return app


@asynccontextmanager
async def listening(certificate: TlsCertificate) -> AsyncIterator[str]:
    with bind_socket("127.0.0.1", 0, hint="") as listener:
        async with serve(create_app(), listener, certificate=certificate):
            yield url_of(listener).replace("http:", "https:")


def address_of(url: str) -> tuple[str, int]:
    parsed = httpx.URL(url)
    return parsed.host, parsed.port or 0


async def test_who_trusts_the_authority_is_served_and_no_one_else(authority: Authority) -> None:
    async with listening(TlsCertificate(authority.certificate, authority.key)) as url:
        async with httpx.AsyncClient(verify=authority.trusting()) as client:
            assert (await client.get(url)).json() == "yes"
        async with httpx.AsyncClient() as stranger:
            with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
                await stranger.get(url)
            # HTTP gets no answer: its connection ends.
            with pytest.raises(httpx.TransportError):
                await stranger.get(url.replace("https:", "http:"))
        # What went wrong with those is over: others are served as before.
        async with httpx.AsyncClient(verify=authority.trusting()) as client:
            assert (await client.get(url)).json() == "yes"


async def test_a_request_in_one_segment_with_the_end_of_the_handshake_is_answered(
    authority: Authority,
) -> None:
    async with listening(TlsCertificate(authority.certificate, authority.key)) as url:
        reader, writer = await asyncio.open_connection(*address_of(url))
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = authority.trusting().wrap_bio(incoming, outgoing, server_hostname="localhost")
        while True:
            try:
                client.do_handshake()
                break
            except ssl.SSLWantReadError:
                writer.write(outgoing.read())
                incoming.write(await reader.read(65_536))
        client.write(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
        writer.write(outgoing.read())
        answer = b""
        while b"yes" not in answer:
            incoming.write(await asyncio.wait_for(reader.read(65_536), 30))
            # One record at a time: head and body are two.
            with suppress(ssl.SSLWantReadError):
                while True:
                    answer += client.read(65_536)
        assert answer.startswith(b"HTTP/1.1 200")
        writer.close()


async def test_a_renewed_certificate_is_that_of_later_connections(authority: Authority) -> None:
    certificate = TlsCertificate(authority.certificate, authority.key)

    async def shown() -> bytes | None:
        _, writer = await asyncio.open_connection(*address_of(url), ssl=authority.trusting())
        shown: bytes | None = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return shown

    async with listening(certificate) as url:
        before = await shown()
        key = authority.key.read_bytes()
        renewed = authority.renew()
        new_key = authority.key.read_bytes()
        authority.key.write_bytes(key)
        with capture_logs() as logs:
            # Half of it was renewed: the old one goes on.
            certificate.reload()
            assert await shown() == before
            authority.key.write_bytes(new_key)
            certificate.reload()
            certificate.reload()
        assert await shown() == renewed != before
        events = [line["event"] for line in logs if str(line["event"]).startswith("tls")]
        assert events == ["tls_certificate_not_reloaded", "tls_certificate_reloaded"]


@pytest.mark.parametrize("missing", ["certificate", "key", "match"])
async def test_files_that_are_no_certificate_with_its_key_are_refused_with_a_hint(
    authority: Authority, missing: str
) -> None:
    if missing == "certificate":
        authority.certificate.unlink()
    elif missing == "key":
        authority.key.write_text("no key")
    else:
        key = authority.key.read_bytes()
        authority.renew()
        authority.key.write_bytes(key)
    with pytest.raises(InvalidInput, match="cannot use") as refused:
        TlsCertificate(authority.certificate, authority.key)
    assert "FARM_TLS_KEY" in refused.value.hint


async def test_a_key_with_a_pass_phrase_is_refused_and_not_asked_for(authority: Authority) -> None:
    key = authority.key.read_text()
    authority.key.write_text(
        key.replace("BEGIN EC PRIVATE KEY-----\n", "BEGIN EC PRIVATE KEY-----\n" + ENCRYPTED, 1)
    )
    with pytest.raises(InvalidInput):
        TlsCertificate(authority.certificate, authority.key)


ENCRYPTED = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00112233445566778899AABBCCDDEEFF\n\n"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four connections of one address, and half a second for a handshake."""
    monkeypatch.setattr(TlsProtocol, "limits", ConnectionLimits(16))
    monkeypatch.setattr(TlsProtocol, "head_s", 0.5)


@pytest.mark.usefixtures("impatient")
async def test_connections_without_a_handshake_count_and_end(authority: Authority) -> None:
    async with listening(TlsCertificate(authority.certificate, authority.key)) as url:
        silent = [await asyncio.open_connection(*address_of(url)) for _ in range(8)]
        for reader, _ in silent[4:]:
            # Beyond the limit: ended at once.
            assert await asyncio.wait_for(read_to_the_end(reader), 30) == b""
        for reader, _ in silent[:4]:
            assert await asyncio.wait_for(read_to_the_end(reader), 30) == b""
        async with httpx.AsyncClient(verify=authority.trusting()) as client:
            assert (await client.get(url)).json() == "yes"
        for _, writer in silent:
            writer.close()


async def read_to_the_end(reader: asyncio.StreamReader) -> bytes:
    try:
        return await reader.read()
    except ConnectionError:
        return b""
