"""`farm live time` before TVM has its turn: what is timed, and what is refused."""

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from farm.cli.devices.live.timing import TimingRequest, declared_shapes, measure
from farm.cli.shell.main import main
from farm.core.errors import InvalidInput
from tests.support.models.elf_samples import AARCH64, elf_file

INPUT = "1x3x32x32:float32"
#: A worker in whose time the library is built again, and that then reads the file it was given.
WORKER = """#!{python}
import hashlib, json, pathlib, sys
request = json.loads(sys.argv[-1])
pathlib.Path({library!r}).write_bytes(b"built again")
digest = hashlib.sha256(pathlib.Path(request["library"]).read_bytes()).hexdigest()
print(json.dumps({{"about": {{"program": digest}}, "tvm": "0", "tvm_ffi": "0", "times_s": [1.0],
                  "upload_s": 0.0, "load_s": 0.0}}))
"""


@pytest.fixture
def library(tmp_path: Path) -> Path:
    path = tmp_path / "net.so"
    path.write_bytes(elf_file(AARCH64, loader=None, text=b"\0__tvm_ffi__library_bin\0"))
    return path


def request_for(library: Path) -> TimingRequest:
    return TimingRequest(
        library=library,
        tracker="127.0.0.1:9190",
        key="pixel",
        inputs=declared_shapes([INPUT]),
        number=1,
        repeat=1,
        wait_s=1,
        deadline_s=1,
    )


def test_what_is_timed_is_what_is_recorded_though_the_library_is_built_again(
    library: Path, tmp_path: Path
) -> None:
    worker = tmp_path / "python"
    worker.write_text(WORKER.format(python=sys.executable, library=str(library)))
    worker.chmod(0o755)
    digest = sha256(library.read_bytes()).hexdigest()
    timing = measure(request_for(library), worker, None)
    assert library.read_bytes() == b"built again"
    assert (timing.library_digest, timing.program, timing.model) == (digest, digest, "net")


@pytest.mark.parametrize("name", ["absent", "net.so", "."])
def test_a_python_that_does_not_start_is_named(library: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidInput, match="does not run: ") as refused:
        measure(request_for(library), tmp_path / name, None)
    assert refused.value.hint == "--python names one that has TVM"


@pytest.mark.parametrize("option", ["--wait", "--deadline"])
def test_a_time_of_zero_is_refused(library: Path, capsys: pytest.CaptureFixture[str], option: str) -> None:
    words = ["live", "time", str(library), "--tracker", "127.0.0.1:9190", "--key", "pixel", "--input", INPUT]
    with pytest.raises(SystemExit) as ended:
        main([*words, "--python", sys.executable, option, "0s"])
    assert ended.value.code == 2
    assert f"{option} 0s is no time" in capsys.readouterr().err
