"""What one caller may ask of a farm that wants tokens, over real HTTP."""

import asyncio
import select
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx
import pytest
from starlette.types import Message

from farm.api.http.server import bind_socket
from farm.api.state.bodies_in_progress import BodiesInProgress
from farm.core.errors import FarmBusy
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token
from farm.wire.documents.access import AccessRequest
from tests.api.http.test_header_timeout import GET
from tests.support.farm.http_farm import HttpFarm, http_farm

#: Ends what hangs; how long a busy machine takes decides nothing.
_PATIENCE_S = 120.0


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    data = tmp_path_factory.mktemp("farm")
    with http_farm(data, require_tokens=True, calls_per_minute=3) as served:
        yield served


def new_caller(farm: HttpFarm, name: str) -> dict[str, str]:
    request = AccessRequest(name=name, role=Role.ADMIN)
    service = bind_tx(issue_access_token, now=farm.context.clock.now(), actor="user:root")
    return {"Authorization": f"Bearer {farm.context.database.write(service, request).token}"}


def test_a_call_beyond_the_budget_is_refused_with_the_time_to_wait(farm: HttpFarm) -> None:
    ann, bob = new_caller(farm, "ann"), new_caller(farm, "bob")
    made = [farm.http.post("/api/v1/tokens", json={}, headers=ann) for _ in range(4)]
    assert [answer.status_code for answer in made] == [201, 201, 201, 429]
    problem = made[-1].json()
    assert (problem["code"], problem["blame"], problem["transient"]) == ("limit.reached", "user", True)
    assert "FARM_CALLS_PER_MINUTE" in problem["hint"]
    assert 1 <= int(made[-1].headers["Retry-After"]) <= 20
    # Looking is free, and nobody else has to wait.
    assert farm.http.get("/api/v1/devices", headers=ann).status_code == 200
    assert farm.http.post("/api/v1/tokens", json={}, headers=bob).status_code == 201


def test_callers_without_a_token_share_the_budget_of_their_address(farm: HttpFarm) -> None:
    form = {"token": "bfu_wrong"}
    answers = {farm.http.post("/login", data=form).status_code for _ in range(4)}
    assert 429 in answers


def test_a_farm_that_trusts_its_machine_counts_no_calls(tmp_path: Path) -> None:
    with http_farm(tmp_path, calls_per_minute=1) as open_farm:
        made = [open_farm.http.post("/api/v1/tokens", json={}) for _ in range(3)]
    assert {answer.status_code for answer in made} == {201}


@pytest.mark.anyio
async def test_an_answer_that_nobody_reads_ends() -> None:
    """The listener of the farm and a client with a small window, which never reads."""
    with bind_socket("127.0.0.1", 0, hint="", unread_s=0.3) as listener, socket.socket() as client:
        broken = asyncio.Event()

        async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(bytes(32 * 1024 * 1024))
            # As a server that has nothing more to say: without a limit this waits for ever.
            writer.close()
            try:
                await writer.wait_closed()
            except OSError:
                broken.set()

        server = await asyncio.start_server(answer, sock=listener.dup())
        async with server:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.setblocking(False)
            await asyncio.get_running_loop().sock_connect(client, listener.getsockname())
            await asyncio.get_running_loop().sock_sendall(client, GET)
            await asyncio.wait_for(broken.wait(), 60)


#: Calls that are not answered.
_OPEN: list[object] = []


async def take(bodies: BodiesInProgress, caller: str, pieces: list[bytes], *, more: bool = False) -> None:
    """Receive a body that is not answered in this test."""
    messages: list[Message] = [
        {"type": "http.request", "body": piece, "more_body": more or piece is not pieces[-1]}
        for piece in pieces
    ]

    async def receive() -> Message:
        return messages.pop(0)

    open_call = bodies.counting(caller, receive, is_file=False)
    _OPEN.append(open_call)
    counted = open_call.__enter__()
    for _ in pieces:
        await counted()


@pytest.mark.anyio
async def test_bodies_are_bounded_in_bytes_for_a_caller_and_for_the_farm() -> None:
    bodies = BodiesInProgress(max_bytes=300)
    await take(bodies, "a", [bytes(60), bytes(40)])
    with pytest.raises(FarmBusy, match="for this caller"):
        await take(bodies, "a", [bytes(1)])
    for caller in "bc":
        await take(bodies, caller, [bytes(99)])
    with pytest.raises(FarmBusy):
        await take(bodies, "d", [bytes(4)])


@pytest.mark.anyio
async def test_bodies_that_arrive_are_bounded_in_number() -> None:
    bodies = BodiesInProgress(max_arriving=6)
    for _ in range(2):
        await take(bodies, "a", [b"{"], more=True)
    with pytest.raises(FarmBusy):
        await take(bodies, "a", [b"{"], more=True)
    # One that is there as a whole does not arrive any more.
    await take(bodies, "a", [b"{}"])


@pytest.mark.anyio
async def test_what_an_answered_call_took_is_free_again() -> None:
    bodies = BodiesInProgress(max_bytes=400, max_arriving=4)

    async def receive() -> Message:
        return {"type": "http.request", "body": bytes(100), "more_body": True}

    for _ in range(10):
        with bodies.counting("a", receive, is_file=False) as counted:
            await counted()
    assert (bodies._bytes.total(), bodies._arriving.total()) == (0, 0)


def test_open_reports_of_one_host_stay_within_its_share_of_memory(tmp_path: Path) -> None:
    with http_farm(tmp_path, require_tokens=True) as served:
        object.__setattr__(served.context, "bodies", BodiesInProgress(max_bytes=3 * 1024 * 1024))
        agent = served.enroll()
        address = httpx.URL(served.url)
        head = (
            f"POST /api/v1/agent/attempts/1/report HTTP/1.1\r\nHost: farm\r\n"
            f"Authorization: {agent.headers['Authorization']}\r\nContent-Length: 2000000\r\n\r\n"
        ).encode()
        calls = [socket.create_connection((address.host, address.port or 0), 30) for _ in range(8)]
        answers = []
        for call in calls:
            with suppress(OSError):
                call.sendall(head + bytes(600_000))
        # One of them holds what a caller may have; the others are told to come again.
        waiting = list(calls)
        while len(answers) < 6:
            answered, _, _ = select.select(waiting, [], [], _PATIENCE_S)
            assert answered, f"{len(answers)} answers"
            for call in answered:
                waiting.remove(call)
                with suppress(OSError):
                    answers.append(call.recv(4096))
        for call in calls:
            call.close()
    assert all(answer.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in answer for answer in answers)
