"""Timing of a library on a phone that is driven live, and its record at the farm."""

import json
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from statistics import mean, median, pstdev
from tempfile import TemporaryDirectory
from typing import Any

from farm.blobs.inspection import check_model_file
from farm.client.farm_client import FarmClient
from farm.core.base.address import host_and_port
from farm.core.errors import DeviceError, DeviceTimeout, InvalidInput
from farm.core.models.declared_inputs import declared_input, input_text
from farm.core.models.variant import OPEN, Format, TensorSpec
from farm.variants import remote_timing
from farm.wire.documents.results.imports import ImportAnswer

#: Of the worker beside waiting and measuring: its imports take seconds, more on a busy machine.
_START_S = 120.0
_HINT = "--python names one that has TVM"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingRequest:
    """What is timed, and where."""

    library: Path
    #: HOST:PORT
    tracker: str
    key: str
    inputs: tuple[TensorSpec, ...]
    #: Calls between two readings of the clock, whose mean is one sample.
    number: int
    repeat: int
    #: Until the phone is free.
    wait_s: int
    #: From then on.
    deadline_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveTiming:
    """What was measured, as it is recorded; `driven` says that no plan of the farm ran."""

    driven: str
    tool: str
    tool_version: str
    tvm_ffi: str
    model: str
    library_digest: str
    key: str
    #: What the tracker says of the phone: null of a tracker that is not the farm's.
    device: str | None
    program: str | None
    threads: str | None
    inputs: str
    number: int
    repeat: int
    times_ns: tuple[float, ...]
    upload_ms: float
    load_ms: float
    measured_at: str

    @property
    def mean_ns(self) -> float:
        """Return the mean of the samples."""
        return mean(self.times_ns)

    @property
    def median_ns(self) -> float:
        """Return the median of the samples."""
        return median(self.times_ns)

    @property
    def deviation_ns(self) -> float:
        """Return the standard deviation of the samples, as TVM computes it."""
        return pstdev(self.times_ns)


def declared_shapes(texts: Sequence[str]) -> tuple[TensorSpec, ...]:
    """Return the inputs of a library, which states none.

    Raises:
        InvalidInput: a text is none, or leaves a size open.
    """
    specs = tuple(map(declared_input, texts))
    for spec in specs:
        if OPEN in spec.shape:
            raise InvalidInput(f"a size is open in {input_text(spec)}", hint="--input 1x3x224x224:float32")
    return specs


def measure(request: TimingRequest, python: Path, model: str | None) -> LiveTiming:
    """Time a library on the phone that the tracker gives, by TVM in a process of its own.

    Raises:
        InvalidInput: the file is no library of TVM, the address none, or `python` does not run TVM.
        DeviceError: no phone has the key, or the session has failed; the message says why.
        DeviceTimeout: TVM's client has not ended.
    """
    if check_model_file(request.library) is not Format.TVM:
        raise InvalidInput(
            f"{request.library} is no library of TVM",
            hint="`farm variant build MODEL --runtime tvm` makes one",
        )
    content = request.library.read_bytes()
    with TemporaryDirectory(prefix="benchfarm-live-") as folder:
        # The file may be built again while the phone is waited for.
        copy = Path(folder, request.library.name)
        copy.write_bytes(content)
        words = _worker_request(request, copy)
        answer = _answer_of(python, words, request.wait_s + request.deadline_s + _START_S)
    if "refused" in answer:
        raise DeviceError(answer["refused"], hint=answer["hint"])
    about = answer["about"]
    return LiveTiming(
        driven="live",
        tool="time_evaluator",
        tool_version=answer["tvm"],
        tvm_ffi=answer["tvm_ffi"],
        model=model or request.library.stem,
        library_digest=sha256(content).hexdigest(),
        key=request.key,
        device=about.get("device"),
        program=about.get("program"),
        threads=about.get("threads"),
        inputs=";".join(map(input_text, request.inputs)),
        number=request.number,
        repeat=request.repeat,
        times_ns=tuple(value * 1e9 for value in answer["times_s"]),
        upload_ms=answer["upload_s"] * 1e3,
        load_ms=answer["load_s"] * 1e3,
        measured_at=datetime.now(UTC).isoformat(timespec="milliseconds"),
    )


def _worker_request(request: TimingRequest, library: Path) -> str:
    try:
        host, port = host_and_port(request.tracker)
    except ValueError as error:
        raise InvalidInput(str(error), hint="--tracker 127.0.0.1:9190, as farm live tvm prints it") from error
    words = {
        "host": host,
        "port": port,
        "key": request.key,
        "library": str(library),
        "inputs": [{"shape": spec.shape, "dtype": spec.dtype} for spec in request.inputs],
        "number": request.number,
        "repeat": request.repeat,
        "wait_s": request.wait_s,
        "deadline_s": request.deadline_s,
    }
    return json.dumps(words)


def _answer_of(python: Path, request: str, deadline_s: float) -> Mapping[str, Any]:
    try:
        done = subprocess.run(
            [str(python), "-I", remote_timing.__file__, request],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=deadline_s,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise DeviceTimeout(f"TVM's client has not ended within {deadline_s:.0f} s") from error
    except OSError as error:
        raise InvalidInput(f"{python} does not run: {error.strerror}", hint=_HINT) from error
    if done.returncode != 0 or not done.stdout.startswith("{"):
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        raise InvalidInput(f"{python} cannot run TVM: {last[:300]}", hint=_HINT)
    answer: Mapping[str, Any] = json.loads(done.stdout)
    return answer


def record(farm: FarmClient, timing: LiveTiming) -> ImportAnswer:
    """Record a timing among the results that the farm's plans did not measure."""
    name = f"{timing.model} on {timing.device or timing.key}, {timing.measured_at}"
    return farm.import_file(name, json.dumps(asdict(timing)).encode())
