"""`farm harness build` and `fetch` against a real farm: what is registered, and why nothing is."""

import json
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from farm.cli.shell.main import main
from farm.core.base.ids import digest_of
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.models.elf_samples import elf_file

PROGRAM = elf_file(needed=["libc.so"], text=b"\0graph\0num_runs\0num_threads\0")
ADDRESS = "2.1/android_arm64/benchmark_model"


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm")) as running:
        yield running


@pytest.fixture(autouse=True)
def home(farm: HttpFarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FARM_URL", farm.url)
    for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    return tmp_path


@pytest.fixture
def mirror(tmp_path: Path) -> Iterator[str]:
    """The address of a server with a vendor's file."""
    file = tmp_path / "mirror" / ADDRESS
    file.parent.mkdir(parents=True)
    file.write_bytes(PROGRAM)
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "mirror"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def shown(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    """The programs that `farm harness show --json` shows."""
    capsys.readouterr()
    assert run("harness", "show", "benchmark_model", "--json") == 0
    programs: list[dict[str, Any]] = json.loads(capsys.readouterr().out)["programs"]
    return programs


def test_a_fetched_program_is_registered_with_what_it_was_taken_from(
    mirror: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("harness", "fetch", "litert@2.1", "--from", mirror) == 0
    assert "no digest was stated or seen before" in capsys.readouterr().err
    [program] = shown(capsys)
    assert (program["abi"], program["entry"]) == ("arm64-v8a", "benchmark_model")
    part = {
        "name": "litert",
        "version": "2.1",
        "digest": digest_of(PROGRAM),
        "source": f"{mirror}/{ADDRESS}",
    }
    assert program["built_with"] == [part]
    assert run("harness", "show", "benchmark_model") == 0
    printed = "".join(capsys.readouterr().out.split())
    assert f"builtwith:litert2.1,{digest_of(PROGRAM)[:12]}" in printed
    # The same file, registered by hand, is the same program: what it was taken from stays known.
    copy = tmp_path / "benchmark_model"
    copy.write_bytes(PROGRAM)
    copy.chmod(0o755)
    assert run("harness", "add", "benchmark_model", str(copy)) == 0
    assert [program["built_with"] for program in shown(capsys)] == [[part]]


def test_nothing_is_registered_of_a_file_with_another_digest(
    mirror: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before = shown(capsys)
    words = ("harness", "fetch", "litert@2.1", "--from", mirror, "--sha256", digest_of(b"other"))
    assert run(*words) != 0
    assert "was stated" in capsys.readouterr().err
    assert shown(capsys) == before


def test_without_a_network_the_address_and_the_place_are_told(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert run("harness", "fetch", "litert@2.1", "--from", "http://127.0.0.1:1") == 2
    printed = " ".join(capsys.readouterr().err.split())
    assert f"http://127.0.0.1:1/{ADDRESS} cannot be reached" in printed
    assert f"{tmp_path}/XDG_CACHE_HOME" in printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("fetch", "onnx@1"), "no vendor's address is known for `onnx`"),
        (("fetch", "litert"), "states no version"),
        (("build", "onnx"), "there is no recipe for `onnx`"),
        (("build", "llama.cpp", "--abi", "x86_64"), "not for `x86_64`"),
    ],
)
def test_what_cannot_be_built_or_fetched_is_told_with_a_hint(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], message: str
) -> None:
    assert run("harness", *words) != 0
    printed = capsys.readouterr().err
    assert message in " ".join(printed.split())
    assert "\nhint: " in printed


def test_without_an_emulator_nothing_is_built(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert run("harness", "build", "executorch") == 2
    printed = capsys.readouterr().err
    assert "there is no qemu-aarch64-static on this machine" in printed
    assert "apt install qemu-user-static" in printed


@pytest.mark.parametrize("changes", [{"digest": "abc"}, {"source": "x" * 2000}])
def test_the_farm_checks_parts_itself(farm: HttpFarm, changes: dict[str, str]) -> None:
    farm.http.put(f"/api/v1/blobs/{digest_of(PROGRAM)}", content=PROGRAM)
    part = {"name": "p", "version": "1", "digest": digest_of(b"p"), "source": "p.tar"} | changes
    registration = {
        "name": "benchmark_model",
        "files": [{"path": "b", "digest": digest_of(PROGRAM), "executable": True}],
        "entry": "b",
        "built_with": [part],
    }
    answer = farm.http.post("/api/v1/harnesses", json=registration)
    assert (answer.status_code, answer.json()["code"]) == (422, "input.invalid")
