"""The cost of idle agents for a farm: each call is held until the next heartbeat."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from machine import cpu_s
from pydantic import SecretStr
from rig import FarmRig
from sqlalchemy.engine import Connection

from farm.clock import SystemClock
from farm.core.base.ids import HostId
from farm.database.transaction import Tx
from farm.services.access.enrollment import create_join_token, enroll
from farm.services.agents.sessions import open_session
from farm.wire.agents.protocol import Enrollment, Exchange, SessionOpening

#: After this time, the farm is considered to be down.
_MOST_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Idle:
    """A farm's process while agents are idle."""

    agents: int
    memory_bytes: int
    #: CPU seconds a second.
    cpu_share: float


def idle(rig: FarmRig, agents: int, *, heartbeat_s: float, for_s: float) -> Idle:
    """Connect so many agents without phones, and measure the farm's process while they send heartbeats."""
    calls = rig.database.write(_enrolled, agents, heartbeat_s)
    return asyncio.run(_idle(rig, calls, for_s))


async def _idle(rig: FarmRig, calls: Sequence["_Caller"], for_s: float) -> Idle:
    address = urlsplit(rig.url)
    tasks = [asyncio.create_task(call.beat(str(address.hostname), int(address.port or 0))) for call in calls]
    # After this, every agent has sent a heartbeat and is held.
    async with asyncio.timeout(_MOST_S):
        await asyncio.gather(*(call.held.wait() for call in calls))
    cpu_before_s, began_s = cpu_s(rig.farm_pid), time.monotonic()
    await asyncio.sleep(for_s)
    share = (cpu_s(rig.farm_pid) - cpu_before_s) / (time.monotonic() - began_s)
    for task in tasks:
        if task.done():
            task.result()
        task.cancel()
    return Idle(agents=len(calls), memory_bytes=memory_bytes(rig.farm_pid), cpu_share=share)


def memory_bytes(pid: int) -> int:
    """Return the private memory of a process."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    raise LookupError(pid)


class _Caller:
    """One agent's loop over one connection."""

    def __init__(
        self, credential: str, session_id: int, *, starts_after_s: float, heartbeat_s: float
    ) -> None:
        self._credential = credential
        self._session_id = session_id
        self._starts_after_s = starts_after_s
        self._heartbeat_s = heartbeat_s
        self._seq = 0
        #: Set once the first call is answered and the second is sent.
        self.held = asyncio.Event()

    async def beat(self, host: str, port: int) -> None:
        """Exchange until cancelled; the farm holds each call for one heartbeat."""
        await asyncio.sleep(self._starts_after_s)
        reader, writer = await asyncio.open_connection(host, port)
        while True:
            self._seq += 1
            body = Exchange(seq=self._seq, wait_s=self._heartbeat_s).model_dump_json()
            writer.write(
                f"POST /api/v1/agent/sessions/{self._session_id}/exchange HTTP/1.1\r\nHost: {host}:{port}\r\n"
                f"Authorization: Bearer {self._credential}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
            )
            if self._seq > 1:
                self.held.set()
            head = await reader.readuntil(b"\r\n\r\n")
            length = next(
                int(line.split(b":")[1]) for line in head.split(b"\r\n") if b"content-length:" in line.lower()
            )
            answer = await reader.readexactly(length)
            if b" 200 " not in head.partition(b"\r\n")[0]:
                raise RuntimeError(answer.decode(errors="replace"))


def _enrolled(connection: Connection, agents: int, heartbeat_s: float) -> list[_Caller]:
    now = SystemClock().now()
    callers = []
    for number in range(agents):
        host = HostId(f"idle-{number}")
        token = SecretStr(create_join_token(Tx(connection, now), auto_admit=True))
        answer = enroll(Tx(connection, now), Enrollment(host=host, join_token=token))
        opening = SessionOpening(boot_id="boot", agent_version="benchmark")
        session = open_session(Tx(connection, now), host, opening)
        starts_after_s = heartbeat_s * number / agents
        caller = _Caller(
            answer.credential, session.session_id, starts_after_s=starts_after_s, heartbeat_s=heartbeat_s
        )
        callers.append(caller)
    return callers
