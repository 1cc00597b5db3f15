"""Who hangs up in the middle of a request made no mistake of the farm's."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.farm.http_farm import HttpFarm, http_farm


@pytest.mark.fault(38)
def test_a_report_that_is_cut_off_settles_nothing_and_is_no_mistake_of_the_farms(tmp_path: Path) -> None:
    with http_farm(tmp_path) as farm, capture_logs() as logged:
        agent = farm.enroll()
        answers = _cut_off(farm, "/api/v1/agent/attempts/1/report", agent.headers)
        assert [answer.get("status") for answer in answers[:1]] == [400]
    assert [entry for entry in logged if entry["event"] == "request_failed"] == []


def _cut_off(farm: HttpFarm, path: str, headers: dict[str, str]) -> list[Any]:
    """What the farm says to half a body; nobody hears it."""
    said: list[Any] = []
    heard = iter([{"type": "http.request", "body": b"{", "more_body": True}, {"type": "http.disconnect"}])

    async def receive() -> Any:
        return next(heard)

    async def send(message: Any) -> None:
        said.append(message)

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [
            (b"host", b"127.0.0.1"),
            *((name.lower().encode(), value.encode()) for name, value in headers.items()),
        ],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    asyncio.run_coroutine_threadsafe(farm.app(scope, receive, send), farm.loop).result(30)
    return said
