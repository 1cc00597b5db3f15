"""A farm, agents and virtual phones as processes of their own, over HTTP and a real adb server."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import farm
from agents.adb.server import end_own_server, find_own_server
from agents.host.process import end_process, start_ticks
from agents.virtual.pool import VirtualDeviceHandle, start_devices, stop_devices
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.blobs.disk import DiskBlobs
from farm.cli.shell.address import ANNOUNCEMENT_FILE
from farm.client.farm_client import FarmClient
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.base.ids import Digest, MatrixId, digest_of
from farm.core.devices.device import Health
from farm.core.models.variant import Manifest
from farm.core.programs.bundle import single_file
from farm.database.engine import Database, sqlite_url
from farm.database.transaction import bind_tx
from farm.services.access.enrollment import create_join_token
from farm.store.files.artifacts import put_artifact
from farm.store.files.programs import put_program
from farm.wire.documents.matrices.matrices import MatrixView
from tests.support.agents.run_spans import RunSpan, run_spans
from tests.support.faults.port_faults import held_port

T = TypeVar("T")

CHECKOUT = Path(farm.__file__).parent.parent
_FARM = (sys.executable, "-m", "farm.cli.shell.main", "up", "--no-agent")
#: A farm that is killed while it stops says nothing of its runs: on a busy machine it takes its time.
_STOP_S = 60.0
#: One that does not stand still ends at once.
_ADB_STOP_S = 3.0


def eventually(
    look: Callable[[], T | None], what: str, *, within_s: float = 120.0, every_s: float = 0.1
) -> T:
    """What `look` finds, soon after that is something true: other processes have no event to wait for.

    A look takes time from those that it waits for, most of all one that asks a farm or reads all processes.
    """
    deadline_s = time.monotonic() + within_s
    while not (found := look()):
        assert time.monotonic() < deadline_s, f"within {within_s:g} s: {what}"
        time.sleep(every_s)
    return found


class Process:
    """A child that is ended by its pid, and writes one log over all its lives."""

    def __init__(
        self, command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
    ) -> None:
        self.command = list(command)
        self.log = log
        self._environment = {**os.environ, **(environment or {})}
        self._child: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._child is not None, "it was not started"
        return self._child.pid

    def spawn(self) -> None:
        assert self._child is None, "it runs already"
        with self.log.open("ab") as sink:
            self._child = subprocess.Popen(
                self.command,
                cwd=CHECKOUT,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    @property
    def is_running(self) -> bool:
        """Whether it was started, and has not ended by itself or by us."""
        return self._child is not None and self._child.poll() is None

    def send(self, number: signal.Signals) -> None:
        """Send something that is not its end, such as SIGSTOP."""
        os.kill(self.pid, number)

    def kill(self) -> None:
        """SIGKILL; returns when it is gone."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM, and force where that does not help; nothing happens when it does not run."""
        self._end(signal.SIGTERM)

    def check_alive(self) -> None:
        code = self._child.poll() if self._child else None
        assert code is None, f"it ended with exit code {code}\n{self.tail()}"

    def tail(self) -> str:
        return self.log.read_text(errors="replace")[-4000:]

    def _end(self, number: signal.Signals) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.send_signal(number)
        # One under SIGSTOP would not hear of it.
        child.send_signal(signal.SIGCONT)
        try:
            child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


class FarmProcess(Process):
    """A farm without an agent, on the same port and data folder in all its lives.

    `database` and `blobs` are the test's own way to the same rows and files.
    """

    def __init__(
        self,
        folder: Path,
        *,
        command: Sequence[str] = _FARM,
        environment: Mapping[str, str] | None = None,
        database_url: str | None = None,
        blobs: Path | None = None,
    ) -> None:
        """On PostgreSQL where a URL is given, with files in a folder that other processes share."""
        given = {"FARM_DATABASE_URL": database_url, "FARM_BLOBS_PATH": None if blobs is None else str(blobs)}
        shared = {name: value for name, value in given.items() if value is not None}
        super().__init__(command, folder.with_suffix(".log"), {**(environment or {}), **shared})
        self.folder = folder
        self.database_path = FarmConfig(data_dir=folder).database_path
        self.database = Database(database_url or sqlite_url(self.database_path))
        self.blobs = DiskBlobs(blobs or FarmConfig(data_dir=folder).blobs_dir)
        #: Any free one until the first start, unless somebody holds one for it.
        self.port = 0
        self._base = self.command

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Run it; returns when it listens."""
        self.command = [*self._base, "--port", str(self.port), "--data", str(self.folder)]
        self.spawn()
        url = eventually(self._announced, f"the farm listens; {self.log}")
        self.port = int(url.rpartition(":")[2])

    def client(self) -> FarmClient:
        return FarmClient(self.url)

    def join_token(self) -> str:
        return self.database.write(bind_tx(create_join_token, now=SystemClock().now()), auto_admit=True)

    def register_program(self, content: bytes) -> Digest:
        """Make a program the one that new matrices run on virtual phones."""
        digest = self.put_artifact(content)
        self.database.write(
            bind_tx(put_program, now=SystemClock().now()),
            harness="speed_benchmark_torch",
            abi="x86_64",
            bundle=single_file("speed_benchmark_torch", digest, len(content)),
        )
        return digest

    def put_artifact(self, content: bytes) -> Digest:
        digest = digest_of(content)
        self.blobs.put([content], digest)
        self.database.write(bind_tx(put_artifact, now=SystemClock().now()), digest, len(content))
        return digest

    def register_model(self, manifest: Manifest, content: bytes) -> None:
        """Make a model file known, as a user of the API does."""
        path = self.folder / "model"
        path.write_bytes(content)
        with self.client() as client:
            client.upload(path, manifest.digest)
            client.register_variant(manifest)

    def submit(self, spec: Mapping[str, object]) -> MatrixId:
        with self.client() as client:
            return client.submit_matrix(spec).matrix_id

    def await_matrix(self, matrix_id: MatrixId, *, within_s: float) -> MatrixView:
        """The matrix when it is finished."""
        with self.client() as client:
            look = partial(client.matrix, matrix_id)
            eventually(lambda: look().finished_at, f"matrix {matrix_id} ends", within_s=within_s, every_s=0.3)
            return look()

    def await_phones(self, phones: Sequence[VirtualDeviceHandle]) -> None:
        """Returns when all of them have passed their checks."""
        with self.client() as client:
            wanted = {phone.serial for phone in phones}
            eventually(lambda: wanted <= _good(client), f"{sorted(wanted)} pass their checks")

    def cli(self, *words: str, within_s: float = 120) -> Any:
        """What a `farm` command with `--json` prints; it must say nothing else on stdout."""
        done = subprocess.run(
            [sys.executable, "-m", "farm.cli.shell.main", *words, "--json"],
            cwd=CHECKOUT,
            env={**os.environ, "FARM_URL": self.url},
            capture_output=True,
            text=True,
            timeout=within_s,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def text(self, *words: str) -> str:
        """What a `farm` command prints for people, 100 columns wide."""
        return subprocess.run(
            [sys.executable, "-m", "farm.cli.shell.main", *words],
            env={**os.environ, "FARM_URL": self.url, "COLUMNS": "100"},
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        ).stdout

    def _announced(self) -> str | None:
        self.check_alive()
        try:
            said = json.loads((self.folder / ANNOUNCEMENT_FILE).read_text())
        except FileNotFoundError:
            return None
        # A farm that was killed leaves its announcement behind.
        return str(said["url"]) if said["pid"] == self.pid else None


class AgentProcess(Process):
    """An agent with phones on TCP, enrolled at its first start."""

    def __init__(
        self,
        farm: FarmProcess,
        folder: Path,
        phones: Sequence[VirtualDeviceHandle],
        *,
        host: str,
        url: str | None = None,
        environment: Mapping[str, str] | None = None,
        log: Path | None = None,
    ) -> None:
        """It calls the farm by `url`, or where that listens; its log is beside its folder by default."""
        folder.mkdir()
        (folder / "join-token").write_text(farm.join_token())
        self.folder = folder
        words = ["--farm-url", url or farm.url, "--host", host, "--data-dir", str(folder), "--no-adb-usb"]
        words += ["--join-token-file", str(folder / "join-token")]
        words += ["--adb-connect", ",".join(phone.address for phone in phones)]
        command = [sys.executable, "-m", "agents.daemon", *words]
        super().__init__(command, log or folder.with_suffix(".log"), environment)

    @property
    def spool(self) -> Path:
        return self.folder / "spool"

    def adb_server_pid(self) -> int:
        found = self.find_adb_server_pid()
        assert found is not None, "no adb server was started"
        return found

    def find_adb_server_pid(self) -> int | None:
        """Of the server that the agent started last; None where none is left."""
        return find_own_server(self.folder / "adb")

    def kill_adb_server(self) -> None:
        """SIGKILL; it must not be under SIGSTOP for this to be quick."""
        end_own_server(self.folder / "adb", deadline_s=_STOP_S, signals=(signal.SIGKILL,))

    def stop(self) -> None:
        """End it, and the adb server that it left behind if it was killed."""
        super().stop()
        end_own_server(self.folder / "adb", deadline_s=_ADB_STOP_S)


@contextmanager
def running_farm(farm: FarmProcess) -> Iterator[FarmProcess]:
    """Start a farm; whatever life of it runs at the end is ended. Its port is its own between its lives."""
    with held_port() as farm.port:
        try:
            farm.start()
            yield farm
        finally:
            farm.stop()
            farm.database.close()


@contextmanager
def running_farm_with_agent(farm: FarmProcess) -> Iterator[FarmProcess]:
    """Start a farm whose command embeds an agent and virtual phones; nothing of them is left at the end."""
    try:
        with running_farm(farm):
            yield farm
    finally:
        _end_phones(farm.folder / "virtual")
        end_own_server(farm.folder / "agent" / "adb", deadline_s=_ADB_STOP_S)


@contextmanager
def running_phones(
    count: int, folder: Path, *, shell: str = "/bin/sh", shared_cpu: bool = True
) -> Iterator[list[VirtualDeviceHandle]]:
    """Virtual phones; at the end they go, and whatever still runs on them."""
    try:
        yield start_devices(count, folder, shell=shell, shared_cpu=shared_cpu)
    finally:
        _end_phones(folder)


@contextmanager
def running_agent(agent: AgentProcess) -> Iterator[AgentProcess]:
    """Start an agent; whatever life of it runs at the end is ended."""
    try:
        agent.spawn()
        yield agent
    finally:
        agent.stop()


def runs_of(phones: Sequence[VirtualDeviceHandle]) -> list[RunSpan]:
    """Every run that the phones' journals know of."""
    return [span for phone in phones for span in run_spans(phone.state / JOURNAL_FILE)]


def _good(client: FarmClient) -> set[str]:
    return {str(device.device_id) for device in client.devices() if device.health is Health.GOOD}


def _end_phones(folder: Path) -> None:
    stop_devices(folder)
    for path in folder.glob(f"*/{JOURNAL_FILE}"):
        _end_runs(path)


def _end_runs(path: Path) -> None:
    for pid, ticks in open_runs(path):
        is_run = partial(_is_process, ticks)
        end_process(pid, is_run, deadline_s=1.0, signals=(signal.SIGKILL,))


def _is_process(ticks: int, pid: int) -> bool:
    return start_ticks(pid) == ticks
