"""Reports that wait for their turn together travel in one call, and each hears of itself alone."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from random import Random

import httpx
import pytest

from agents.farm_api import FarmApi
from agents.host.atomic_file import DiskThread
from agents.outbox.sender import MAX_BATCH_BYTES, MAX_CONCURRENT_CALLS, ReportDelivery
from agents.outbox.spool import Spool
from farm.core.base.ids import AttemptId
from farm.core.errors import FarmError, FarmFault, FarmUnreachable, NotFound, ReportConflict
from farm.wire.agents.report_batch import MAX_REPORTS, unpack_reports
from farm.wire.base import Problem

pytestmark = pytest.mark.anyio
_ALL = "/api/v1/agent/attempts/reports"


def problem(kind: type[FarmError], status: int) -> dict[str, object]:
    document = Problem(
        title="t",
        status=status,
        detail="d",
        code=kind.code,
        blame=kind.blame,
        transient=kind.transient,
        hint="h",
    )
    return document.model_dump(mode="json")


class FakeFarm:
    """Takes every report; counts calls, and the reports in each."""

    def __init__(self) -> None:
        self.calls: list[list[int]] = []
        self.bodies: dict[int, list[bytes]] = {}
        self.problem_by_attempt: dict[int, dict[str, object]] = {}
        self.problem_once: dict[int, dict[str, object]] = {}
        self.refuses_several: dict[str, object] | None = None
        self.most_under_way = self.under_way = 0

    async def answer(self, request: httpx.Request) -> httpx.Response:
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        await asyncio.sleep(0)
        self.under_way -= 1
        if request.url.path != _ALL:
            attempt_id = int(request.url.path.split("/")[-2])
            self.hear([(attempt_id, request.content)])
            refusal = self.problem_by_attempt.get(attempt_id)
            status = 200 if refusal is None else int(str(refusal["status"]))
            return httpx.Response(status, json=refusal or taken(attempt_id))
        if self.refuses_several is not None:
            return httpx.Response(int(str(self.refuses_several["status"])), json=self.refuses_several)
        self.hear(unpack_reports(request.content))
        return httpx.Response(200, json={"reports": [self.outcome(each) for each in self.calls[-1]]})

    def hear(self, reports: list[tuple[int, bytes]]) -> None:
        self.calls.append([attempt_id for attempt_id, _ in reports])
        for attempt_id, body in reports:
            self.bodies.setdefault(attempt_id, []).append(body)

    def outcome(self, attempt_id: int) -> dict[str, object]:
        refusal = self.problem_by_attempt.get(attempt_id) or self.problem_once.pop(attempt_id, None)
        said = {"answer": taken(attempt_id)} if refusal is None else {"problem": refusal}
        return {"attempt_id": attempt_id, **said}


def taken(attempt_id: int) -> dict[str, object]:
    return {"attempt_id": attempt_id, "counted": True}


def body_of(attempt_id: int) -> bytes:
    return json.dumps({"of": attempt_id, "text": 'a "quoted"\nline'}).encode()


async def deliver(farm: FakeFarm, folder: Path, count: int, body: Callable[[int], bytes] = body_of) -> Spool:
    """Have so many reports delivered that begin to wait at the same moment."""
    spool, disk = Spool(folder), DiskThread()
    ids = [AttemptId(number) for number in range(1, count + 1)]
    for attempt_id in ids:
        spool.put(attempt_id, body(attempt_id))
    http = httpx.AsyncClient(transport=httpx.MockTransport(farm.answer), base_url="http://farm")
    delivery = ReportDelivery(FarmApi(http), spool, disk, Random(1))
    await asyncio.gather(*(delivery.deliver(attempt_id) for attempt_id in ids))
    disk.close()
    return spool


async def test_reports_that_wait_for_their_turn_go_in_one_call(tmp_path: Path) -> None:
    farm, count = FakeFarm(), 2 * MAX_REPORTS
    spool = await deliver(farm, tmp_path, count)
    assert spool.acknowledged() == list(range(1, count + 1))
    assert all(len(call) <= MAX_REPORTS for call in farm.calls)
    assert len(farm.calls) <= 2 * MAX_CONCURRENT_CALLS
    assert {number: [body_of(number)] for number in range(1, count + 1)} == farm.bodies


async def test_a_report_that_waits_alone_goes_as_it_always_did(tmp_path: Path) -> None:
    farm = FakeFarm()
    farm.refuses_several = problem(NotFound, 404)
    spool = await deliver(farm, tmp_path, 1)
    assert (spool.acknowledged(), farm.calls) == ([1], [[1]])


@pytest.mark.fault(36)
async def test_a_backlog_takes_few_calls_at_a_time(tmp_path: Path) -> None:
    farm = FakeFarm()
    farm.refuses_several = problem(NotFound, 404)
    spool = await deliver(farm, tmp_path, 4 * MAX_CONCURRENT_CALLS)
    assert spool.acknowledged() == list(range(1, 4 * MAX_CONCURRENT_CALLS + 1))
    assert farm.most_under_way <= MAX_CONCURRENT_CALLS


async def test_a_farm_of_an_earlier_release_is_sent_one_report_a_call(tmp_path: Path) -> None:
    farm = FakeFarm()
    farm.refuses_several = problem(NotFound, 404)
    spool = await deliver(farm, tmp_path, 30)
    assert spool.acknowledged() == list(range(1, 31))
    assert {len(call) for call in farm.calls} == {1}


@pytest.mark.invariant("I12")
async def test_one_that_the_farm_refuses_permanently_is_put_aside_alone(tmp_path: Path) -> None:
    farm = FakeFarm()
    farm.problem_by_attempt[7] = problem(ReportConflict, 409)
    spool = await deliver(farm, tmp_path, 20)
    assert spool.acknowledged() == [number for number in range(1, 21) if number != 7]
    assert spool.pending() == []


@pytest.mark.invariant("I12")
async def test_one_that_the_farm_cannot_take_now_is_sent_again(tmp_path: Path) -> None:
    farm = FakeFarm()
    farm.problem_once[7] = problem(FarmFault, 500)
    spool = await deliver(farm, tmp_path, 20)
    assert spool.acknowledged() == list(range(1, 21))
    assert {number for number, bodies in farm.bodies.items() if len(bodies) > 1} == {7}
    assert len(set(farm.bodies[7])) == 1


async def test_large_reports_share_no_call(tmp_path: Path) -> None:
    farm = FakeFarm()
    spool = await deliver(farm, tmp_path, 8, lambda number: b" " * (MAX_BATCH_BYTES // 2 + number))
    assert spool.acknowledged() == list(range(1, 9))
    assert {len(call) for call in farm.calls} == {1}


async def test_who_waits_for_a_sender_that_is_stopped_hears_so(tmp_path: Path) -> None:
    called, never = asyncio.Event(), asyncio.Event()

    async def answer(_: httpx.Request) -> httpx.Response:
        called.set()
        await never.wait()
        return httpx.Response(500)

    spool, disk = Spool(tmp_path), DiskThread()
    ids = [AttemptId(number) for number in range(1, MAX_CONCURRENT_CALLS + 2)]
    for attempt_id in ids:
        spool.put(attempt_id, body_of(attempt_id))
    http = httpx.AsyncClient(transport=httpx.MockTransport(answer), base_url="http://farm")
    sending = ReportDelivery(FarmApi(http), spool, disk, Random(1))
    *senders, last = [asyncio.create_task(sending.send_report(attempt_id)) for attempt_id in ids]
    await called.wait()
    for sender in senders:
        sender.cancel()
    with pytest.raises(FarmUnreachable):
        await last
    disk.close()
