"""The farm as the agent sees it: answers, refusals, and what only pretends to be a farm."""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from random import Random

import anyio
import httpx
import pytest

from agents.attempts.artifact_cache import ArtifactCache, ArtifactLost
from agents.farm_api import FarmApi, farm_client
from agents.host.atomic_file import DiskThread
from agents.outbox.sender import ReportDelivery
from agents.outbox.spool import Spool
from farm.core.base.ids import AttemptId, Digest, SessionId
from farm.core.errors import (
    ArtifactMissing,
    AuthError,
    FarmBusy,
    FarmDiskFull,
    FarmError,
    FarmFault,
    FarmUnreachable,
    Forbidden,
    InvalidInput,
    NotFound,
    ReportConflict,
    SessionFenced,
)
from farm.wire.agents.protocol import Exchange
from farm.wire.base import Problem
from tests.support.fake_clock import FakeClock

pytestmark = pytest.mark.anyio

Handler = Callable[[httpx.Request], httpx.Response | Awaitable[httpx.Response]]
CONTENT = b"a model" * 1000
DIGEST = Digest(hashlib.sha256(CONTENT).hexdigest())


def api(handler: Handler) -> FarmApi:
    return FarmApi(httpx.AsyncClient(transport=httpx.MockTransport(handler), base_url="http://farm"))


def problem(kind: type[FarmError], status: int) -> httpx.Response:
    document = Problem(
        title="t",
        status=status,
        detail="d",
        code=kind.code,
        blame=kind.blame,
        transient=kind.transient,
        hint="h",
    )
    return httpx.Response(status, json=document.model_dump(mode="json"))


def cache(folder: Path, handler: Handler, *, limit_bytes: int = 10**9) -> ArtifactCache:
    return ArtifactCache(folder, api(handler), FakeClock(), limit_bytes=limit_bytes)


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        (problem(SessionFenced, 409), SessionFenced),
        (problem(NotFound, 404), NotFound),
        (problem(AuthError, 401), AuthError),
        (problem(FarmBusy, 503), FarmBusy),
        (httpx.Response(401, text="who are you"), AuthError),
        (httpx.Response(502, text="<html>bad gateway"), FarmFault),
        (httpx.Response(404, text="nginx"), FarmFault),
        (problem(FarmError, 500), FarmFault),
        (httpx.Response(200, text="{}"), FarmFault),
        (httpx.Response(200, text="captive portal"), FarmFault),
    ],
)
async def test_an_answer_that_is_none_becomes_the_error_it_stands_for(
    response: httpx.Response, kind: type[FarmError]
) -> None:
    with pytest.raises(FarmError) as caught:
        await api(lambda request: response).exchange(SessionId(1), Exchange(seq=1))
    assert type(caught.value) is kind


def plan_file(**changes: object) -> dict[str, object]:
    return {"name": "model", "digest": DIGEST, "size_bytes": 1, "path": "lib/model", **changes}


def exchange_answer(
    *, prefetch: tuple[str, ...] = (), file: dict[str, object] | None = None
) -> httpx.Response:
    plan = {
        "harness": "h",
        "backend": "cpu",
        "files": [file or plan_file()],
        "argv": ["true"],
        "timeout_s": 1,
    }
    assignment = {"attempt_id": 1, "job_id": 1, "device_id": "phone-1", "fence": 1, "plan": plan}
    answer = {"seq": 1, "start_within_s": 1, "assignments": [assignment], "prefetch": prefetch}
    return httpx.Response(200, json=answer)


@pytest.mark.parametrize(
    "answer",
    [
        exchange_answer(prefetch=("/etc/cron.d/farm",)),
        exchange_answer(prefetch=(f"../{DIGEST}",)),
        exchange_answer(file=plan_file(digest="../../credential.json")),
        exchange_answer(file=plan_file(path="../../../sdcard/notes")),
        exchange_answer(file=plan_file(path="/data/local/tmp/x")),
    ],
)
async def test_no_name_of_a_farm_leads_out_of_a_folder(answer: httpx.Response) -> None:
    good = exchange_answer(prefetch=(DIGEST,))
    assert (await api(lambda request: good).exchange(SessionId(1), Exchange(seq=1))).prefetch == (DIGEST,)
    with pytest.raises(FarmFault, match="string_pattern_mismatch"):
        await api(lambda request: answer).exchange(SessionId(1), Exchange(seq=1))


@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_without_end_is_not_read_to_it(status: int) -> None:
    async def zeros() -> AsyncIterator[bytes]:
        while True:
            yield bytes(2**20)

    with pytest.raises(FarmFault, match="longer than"):
        await api(lambda request: httpx.Response(status, content=zeros())).exchange(
            SessionId(1), Exchange(seq=1)
        )


class ClosingTransport(httpx.AsyncBaseTransport):
    """Closes connections before it sends, as httpcore does with those that its farm has ended."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.closed: list[int] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        with anyio.CancelScope(shield=True):
            for number in range(3):
                self.begun.set()
                await anyio.sleep(0.01)
                self.closed.append(number)
        await anyio.sleep_forever()
        raise AssertionError


async def test_a_call_that_is_cancelled_leaves_no_connection_open() -> None:
    transport = ClosingTransport()
    async with httpx.AsyncClient(transport=transport, base_url="http://farm") as client:
        call = asyncio.create_task(FarmApi(client).exchange(SessionId(1), Exchange(seq=1)))
        await transport.begun.wait()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert transport.closed == [0, 1, 2]


@pytest.mark.parametrize("error", [httpx.ConnectError, httpx.ReadError, httpx.RemoteProtocolError])
async def test_a_connection_that_breaks_is_an_unreachable_farm(error: type[httpx.TransportError]) -> None:
    def breaks(request: httpx.Request) -> httpx.Response:
        raise error("broken")

    with pytest.raises(FarmUnreachable):
        await api(breaks).exchange(SessionId(1), Exchange(seq=1))


async def test_a_proxy_of_the_environment_is_not_asked_for_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.invalid:3128")
    async with farm_client("http://127.0.0.1:1") as client:
        assert not client.trust_env
    async with farm_client("https://farm.lab:1") as client:
        assert client.trust_env


async def test_a_credential_goes_to_another_machine_encrypted_or_not_at_all() -> None:
    with pytest.raises(InvalidInput, match="not encrypted") as refused:
        farm_client("http://farm.lab:8471")
    assert "--plain-http" in refused.value.hint
    for url in (
        "https://farm.lab:8471",
        "http://127.0.0.1:8471",
        "http://[::1]:8471",
        "http://localhost:8471",
    ):
        await farm_client(url).aclose()
    await farm_client("http://farm.lab:8471", plain_http=True).aclose()


async def test_an_artifact_is_fetched_once_however_many_ask_at_once(tmp_path: Path) -> None:
    asked: list[str] = []

    def serve(request: httpx.Request) -> httpx.Response:
        asked.append(request.url.path)
        return httpx.Response(200, content=CONTENT)

    blobs = cache(tmp_path, serve)
    paths = await asyncio.gather(*(blobs.fetch(DIGEST) for _ in range(5)))
    assert {path.read_bytes() for path in paths} == {CONTENT}
    assert asked == [f"/api/v1/blobs/{DIGEST}"]


async def test_other_bytes_than_announced_never_enter_the_cache(tmp_path: Path) -> None:
    with pytest.raises(FarmFault, match="other bytes"):
        await cache(tmp_path, lambda request: httpx.Response(200, content=b"damaged")).fetch(DIGEST)
    assert not (tmp_path / DIGEST).exists()


async def test_a_damaged_file_of_an_earlier_life_is_fetched_again(tmp_path: Path) -> None:
    (tmp_path / DIGEST).write_bytes(b"rotten")
    path = await cache(tmp_path, lambda request: httpx.Response(200, content=CONTENT)).fetch(DIGEST)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize("kind", [NotFound, ArtifactMissing])
async def test_an_artifact_the_farm_has_lost_is_trouble_of_the_farm(
    tmp_path: Path, kind: type[FarmError]
) -> None:
    with pytest.raises(ArtifactLost, match="has lost"):
        await cache(tmp_path, lambda request: problem(kind, 404)).fetch(DIGEST)


async def delivered(tmp_path: Path, handler: Handler) -> Spool:
    spool, disk = Spool(tmp_path), DiskThread()
    spool.put(AttemptId(1), b'{"evidence": {}}')
    await ReportDelivery(api(handler), spool, disk, Random(1)).deliver(AttemptId(1))
    disk.close()
    return spool


@pytest.mark.invariant("I12")
@pytest.mark.fault(33)
async def test_a_report_is_sent_with_the_same_bytes_until_it_is_taken(tmp_path: Path) -> None:
    bodies: list[bytes] = []

    def fails_once(request: httpx.Request) -> httpx.Response:
        bodies.append(request.content)
        if len(bodies) == 1:
            raise httpx.ReadError("reset after the commit")
        return httpx.Response(200, json={"attempt_id": 1, "counted": True})

    spool = await delivered(tmp_path, fails_once)
    assert bodies == [b'{"evidence": {}}'] * 2
    assert spool.pending() == []


@pytest.mark.invariant("I12")
@pytest.mark.parametrize(("kind", "status"), [(ReportConflict, 409), (NotFound, 404), (Forbidden, 403)])
async def test_a_report_that_the_farm_itself_refuses_permanently_is_put_aside(
    tmp_path: Path, kind: type[FarmError], status: int
) -> None:
    spool = await delivered(tmp_path, lambda request: problem(kind, status))
    assert spool.pending() == []
    assert (tmp_path / "refused" / "1.json").exists()


@pytest.mark.invariant("I12")
@pytest.mark.parametrize(
    "response",
    [
        *(httpx.Response(status, text="<html>by some proxy") for status in (301, 400, 401, 403, 404, 409)),
        *(httpx.Response(status, text="<html>by some proxy") for status in (410, 413, 422, 500, 502, 507)),
        httpx.Response(200, text="<html>log in to this network"),
        httpx.Response(404, json={"detail": "Not Found"}),
        problem(AuthError, 401),
        problem(SessionFenced, 409),
        problem(FarmBusy, 503),
        problem(FarmDiskFull, 507),
        problem(FarmError, 500),
        problem(NotFound, 503),
    ],
    ids=lambda response: f"{response.status_code} {response.text[:30]}",
)
async def test_a_report_is_sent_again_whatever_else_is_answered(
    tmp_path: Path, response: httpx.Response
) -> None:
    asked: list[bytes] = []

    def answers_once(request: httpx.Request) -> httpx.Response:
        asked.append(request.content)
        taken = httpx.Response(200, json={"attempt_id": 1, "counted": True})
        return response if len(asked) == 1 else taken

    spool = await delivered(tmp_path, answers_once)
    assert len(asked) == 2
    assert (spool.pending(), spool.acknowledged()) == ([], [1])
