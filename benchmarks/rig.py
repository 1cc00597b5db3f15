"""A farm, an agent and virtual phones as processes, for benchmarks; all are ended by pid."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NoReturn, TypeVar

from pydantic import SecretStr
from sqlalchemy.engine import Connection

from agents.adb.server import end_own_server, find_own_server, own_address
from agents.host.process import end_process, start_ticks
from agents.virtual.device import TICK_S
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.blobs.disk import DiskBlobs
from farm.cli.farm.demo import is_ready, log_tail, stop_process
from farm.cli.shell.address import ANNOUNCEMENT_FILE
from farm.client.farm_client import FarmClient
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import Digest, MatrixId, digest_of
from farm.core.errors import FarmFault
from farm.core.jobs.job import JobState
from farm.core.programs.bundle import single_file
from farm.database.connect import open_database
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from farm.store.files.artifacts import put_artifact
from farm.store.files.programs import put_program
from farm.store.jobs.jobs import list_jobs
from farm.wire.documents.matrices.jobs import AttemptView

Value = TypeVar("Value")

HARNESS = "speed_benchmark_torch"
#: A call may take long: the cancellation of a million jobs is one.
_ANSWER_S = 1800.0
_POLL_S = 0.02
_START_S = 60.0


@dataclass(frozen=True, kw_only=True)
class FarmRig:
    """A running farm without agents."""

    farm: FarmClient
    url: str
    database: Database
    blobs: DiskBlobs
    farm_pid: int

    def put_file(self, content: bytes) -> Digest:
        """Store a file in the farm, as an upload does."""
        digest = digest_of(content)
        self.blobs.put([content], digest)
        self.database.write(bind_tx(put_artifact, now=SystemClock().now()), digest, len(content))
        return digest

    def join_token(self) -> str:
        """Return a join token for one agent, whose phones are admitted automatically."""
        return self.database.write(bind_tx(create_join_token, now=SystemClock().now()), auto_admit=True)


@dataclass(frozen=True, kw_only=True)
class Rig(FarmRig):
    """A running farm with an agent and phones that have passed their checks; nothing is queued."""

    phones: Sequence[VirtualDeviceHandle]
    adb_address: str
    agent_pid: int

    def put_program(self, content: bytes) -> None:
        """Register a program for new matrices on virtual phones."""
        bundle = single_file("program", self.put_file(content), len(content))
        (abi,) = {device.abi for device in self.farm.devices()}
        assert abi is not None, "phones that have passed their check have facts"
        self.database.write(
            bind_tx(put_program, now=SystemClock().now()), harness=HARNESS, abi=abi, bundle=bundle
        )

    def await_jobs(self, matrix_id: MatrixId, *, within_s: float) -> list[AttemptView]:
        """Wait for the end of a matrix, and return its attempts."""
        self.await_end(matrix_id, within_s=within_s)
        return self.attempts(matrix_id)

    def await_end(self, matrix_id: MatrixId, *, within_s: float, left_out: str | None = None) -> float:
        """Wait until all jobs of a matrix are over, except those of one phone; return the monotonic time.

        It is 10 ms late at most. It reads the database itself: calls over HTTP would cost the farm more.
        """

        def is_over() -> bool:
            return self.database.read(_are_over, matrix_id, left_out)

        eventually(is_over, f"matrix {matrix_id} ends", within_s=within_s, every_s=0.01)
        return time.monotonic()

    def attempts(self, matrix_id: MatrixId, *, left_out: str | None = None) -> list[AttemptView]:
        """Return the last attempt of each job of a matrix."""
        jobs = [job for job in self.farm.jobs(matrix_id) if job.device_id != left_out]
        return [self.farm.attempt(job.attempts[-1]) for job in jobs]

    def await_idle(self) -> None:
        """Wait until every phone is free, clean and healthy, so that the farm does not use any of them."""
        within_s = _START_S + len(self.phones)
        eventually(self._is_idle, "the phones are free", within_s=within_s, every_s=0.05)

    def _is_idle(self) -> bool:
        ready = [device for device in self.farm.devices() if is_ready(device)]
        return len(ready) >= len(self.phones) and not any(
            device.job_id or device.waiting_for for device in ready
        )


@contextmanager
def rig(phones: int, *, scripted: bool = False) -> Iterator[Rig]:
    """Start everything in a temporary folder, and remove all of it at the end, after errors too.

    Args:
        phones: the number of virtual phones.
        scripted: their programs need no CPU, so they run side by side instead of taking turns.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchfarm-")))
        stack.enter_context(interrupted_by_sigterm())
        handles = stack.enter_context(_phones(phones, folder / "phones", scripted=scripted))
        yield stack.enter_context(_rig(folder, handles))


def _are_over(connection: Connection, matrix_id: MatrixId, left_out: str | None) -> bool:
    jobs = list_jobs(connection, matrix_id)
    return all(job.state is JobState.FINISHED for job in jobs if job.device_id != left_out)


def talk(text: str) -> None:
    """Print progress to stderr, apart from the results."""
    sys.stderr.write(f"{text}\n")


def eventually(
    look: Callable[[], Value | None], what: str, *, within_s: float, every_s: float = _POLL_S
) -> Value:
    """Call `look` until it returns a true value, and return that.

    Raises:
        FarmFault: it returned none in time.
    """
    deadline_s = time.monotonic() + within_s
    while not (value := look()):
        if time.monotonic() > deadline_s:
            raise FarmFault(f"within {within_s:g} s this did not happen: {what}")
        time.sleep(every_s)
    return value


@contextmanager
def _rig(folder: Path, phones: Sequence[VirtualDeviceHandle]) -> Iterator[Rig]:
    with ExitStack() as stack:
        alone = stack.enter_context(farm_rig(folder / "farm"))
        agent = stack.enter_context(_agent(folder / "agent", alone.url, alone.join_token(), phones))
        bench = Rig(
            farm=alone.farm,
            url=alone.url,
            database=alone.database,
            blobs=alone.blobs,
            farm_pid=alone.farm_pid,
            phones=phones,
            adb_address=eventually(partial(_adb_address, folder / "agent"), "adb starts", within_s=_START_S),
            agent_pid=agent.pid,
        )
        bench.await_idle()
        yield bench


@contextmanager
def farm_rig(folder: Path, database_url: str | None = None) -> Iterator[FarmRig]:
    """Start a farm alone: on SQLite in its folder, or on another database."""
    url = None if database_url is None else SecretStr(database_url)
    config = FarmConfig(data_dir=folder, database_url=url)
    words = ["farm.cli.shell.main", "up", "--no-agent", "--port", "0", "--data", str(folder)]
    environment = {} if database_url is None else {"FARM_DATABASE_URL": database_url}
    with ExitStack() as stack:
        farm = stack.enter_context(_process(words, folder.with_suffix(".log"), environment))
        address = eventually(partial(_announced, farm, folder), "the farm listens", within_s=_START_S)
        database = open_database(config)
        stack.callback(database.close)
        yield FarmRig(
            farm=stack.enter_context(FarmClient(address, answer_s=_ANSWER_S)),
            url=address,
            database=database,
            blobs=DiskBlobs(config.blobs_dir),
            farm_pid=farm.pid,
        )


@contextmanager
def _agent(
    folder: Path, url: str, token: str, phones: Sequence[VirtualDeviceHandle]
) -> "Iterator[subprocess.Popen[bytes]]":
    folder.mkdir()
    (folder / "join-token").write_text(token)
    words = ["agents.daemon", "--farm-url", url, "--host", "bench", "--data-dir", str(folder)]
    words += ["--no-adb-usb", "--join-token-file", str(folder / "join-token")]
    words += ["--adb-connect", ",".join(phone.address for phone in phones)]
    try:
        with _process(words, folder.with_suffix(".log")) as agent:
            yield agent
    finally:
        end_own_server(folder / "adb")


@contextmanager
def _process(
    words: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    child = None
    try:
        with _uninterrupted(), log.open("ab") as sink:
            child = subprocess.Popen(
                [sys.executable, "-m", *words],
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                env={**os.environ, **(environment or {})},
                # Ctrl-C is for the benchmark, which then stops its processes in order.
                start_new_session=True,
            )
        yield child
    except FarmFault:
        sys.stderr.write(f"{log_tail(log)}\n")
        raise
    finally:
        if child is not None:
            stop_process(child)


@contextmanager
def _phones(count: int, folder: Path, *, scripted: bool) -> Iterator[list[VirtualDeviceHandle]]:
    # Each one lists all processes of the machine at every tick, which would take all the time of a hundred.
    tick_s = max(TICK_S, 0.01 * count)
    try:
        with _uninterrupted():
            phones = start_devices(count, folder, shared_cpu=not scripted, tick_s=tick_s)
        yield phones
    finally:
        stop_devices(folder)
        for path in folder.glob(f"*/{JOURNAL_FILE}"):
            for pid, ticks in open_runs(path):
                end_process(pid, partial(_is_process, ticks), deadline_s=1.0, signals=(signal.SIGKILL,))


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Delay interrupts until the end of the block, so that no unrecorded child process is left behind.

    Raises:
        KeyboardInterrupt: at the end, if an interrupt arrived.
    """
    interrupts: list[int] = []
    handlers = {
        number: signal.signal(number, lambda which, _: interrupts.append(which))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        if interrupts:
            raise KeyboardInterrupt


@contextmanager
def interrupted_by_sigterm() -> Iterator[None]:
    """Let SIGTERM end the block as Ctrl-C does, so that everything is cleaned up."""

    def interrupt(number: int, frame: FrameType | None) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _announced(farm: "subprocess.Popen[bytes]", folder: Path) -> str | None:
    if farm.poll() is not None:
        raise FarmFault(f"the farm ended with exit code {farm.returncode}")
    try:
        announcement: Mapping[str, object] = json.loads((folder / ANNOUNCEMENT_FILE).read_text())
    except FileNotFoundError:
        return None
    return str(announcement["url"])


def _adb_address(folder: Path) -> str | None:
    return None if find_own_server(folder / "adb") is None else own_address(folder / "adb")


def _is_process(ticks: int, pid: int) -> bool:
    return start_ticks(pid) == ticks
