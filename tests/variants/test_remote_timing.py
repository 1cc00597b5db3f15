"""What a worker that times a library of TVM says where no tracker answers, or nothing can be measured."""

import json
import socket
import struct
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from farm.cli.devices.live import timing
from farm.cli.devices.live.timing import TimingRequest, measure
from farm.core.errors import DeviceError, InvalidInput
from farm.core.models.variant import Format
from farm.variants import remote_timing
from farm.variants.remote_timing import Refused, phone_from

pytestmark = pytest.mark.skipif(find_spec("tvm") is None, reason="apache-tvm is not installed")

MAGIC = 0x2F271


def framed(answer: object) -> bytes:
    text = json.dumps(answer).encode()
    return struct.pack("<i", len(text)) + text


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """Listen on a port: one answer to each message of the first client, then silence."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        ended = threading.Event()

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                for answer in answers:
                    connection.recv(1000)
                    connection.sendall(answer)
                ended.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        ended.set()
        thread.join()


def request(port: int) -> dict[str, Any]:
    return {"host": "127.0.0.1", "port": port, "key": "pixel", "wait_s": 0.2}


@pytest.mark.parametrize("answers", [(), (struct.pack("<i", MAGIC),)])
def test_a_port_that_stays_silent_does_not_answer_as_a_tracker(
    monkeypatch: pytest.MonkeyPatch, answers: tuple[bytes, ...]
) -> None:
    monkeypatch.setattr(remote_timing, "_CONNECT_S", 0.2)
    with answering(*answers) as port, pytest.raises(Refused, match="does not answer as a tracker"):
        phone_from(request(port))


@pytest.mark.parametrize(
    "answers",
    [
        (b"HTTP/1.1 400 Bad Request",),
        (struct.pack("<i", MAGIC), framed([0, {"phones": []}])),
        (struct.pack("<i", MAGIC), framed([0, {"server_info": [{"key": 3}], "queue_info": {}}])),
        (struct.pack("<i", MAGIC), framed([0])),
    ],
)
def test_what_answers_otherwise_is_no_tracker(answers: tuple[bytes, ...]) -> None:
    with answering(*answers) as port, pytest.raises(Refused, match="is no tracker of TVM"):
        phone_from(request(port))


def test_a_phone_that_does_not_become_free_is_said_with_its_queue() -> None:
    summary = {"server_info": [{"key": "server:pixel"}], "queue_info": {"pixel": {"pending": 2}}}
    answers = (struct.pack("<i", MAGIC), framed([0, summary]))
    with answering(*answers) as port, pytest.raises(Refused, match="2 clients waited before"):
        phone_from(request(port))


@pytest.mark.long
@pytest.mark.parametrize("kind", [AttributeError, KeyError])
def test_an_error_of_any_kind_is_tvms_and_not_that_there_is_no_tvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    """What TVM's machine raises for a library that is no executable of it."""
    monkeypatch.setattr(timing, "check_model_file", lambda _: Format.TVM)
    fails = "import tvm.rpc\ndef fail(*_, **__): raise {}('vm_load_executable')\ntvm.rpc.connect = fail"
    with_failure(tmp_path, monkeypatch, fails.format(kind.__name__))
    summary = {"server_info": [{"key": "server:pixel"}], "queue_info": {}}
    given = framed([0, ["127.0.0.1", 1, "pixel:1"]])
    with (
        answering(struct.pack("<i", MAGIC), framed([0, summary]), given) as port,
        pytest.raises(DeviceError, match=f"TVM: {kind.__name__}: "),
    ):
        measure(timing_request(tmp_path, port), Path(sys.executable), None)


def test_only_a_python_that_cannot_import_it_cannot_run_tvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timing, "check_model_file", lambda _: Format.TVM)
    with_failure(tmp_path, monkeypatch, "import sys\nsys.modules['tvm'] = None")
    with pytest.raises(InvalidInput, match="cannot run TVM: ModuleNotFoundError"):
        measure(timing_request(tmp_path, 1), Path(sys.executable), None)


def with_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: str) -> None:
    """Let the worker begin with some lines of Python."""
    worker = tmp_path / "worker.py"
    worker.write_text(f"{lines}\n{Path(remote_timing.__file__).read_text()}")
    monkeypatch.setattr(remote_timing, "__file__", str(worker))


def timing_request(tmp_path: Path, port: int) -> TimingRequest:
    library = tmp_path / "net.so"
    library.write_bytes(b"a library")
    return TimingRequest(
        library=library,
        tracker=f"127.0.0.1:{port}",
        key="pixel",
        inputs=(),
        number=1,
        repeat=1,
        wait_s=30,
        deadline_s=30,
    )
