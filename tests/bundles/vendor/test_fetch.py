"""Programs of vendors, from a server on this machine: digests, first use, no network, damaged files."""

import io
import tarfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from farm.bundles.local_bundle import LocalBundle
from farm.bundles.vendor.fetch import fetch_program
from farm.bundles.vendor.table import VENDOR_PROGRAMS, VendorProgram, vendor_program
from farm.core.base.ids import digest_of, is_digest
from farm.core.errors import DigestMismatch, FarmError, InvalidInput, NotFound

NOW = datetime(2026, 11, 29, tzinfo=UTC)
LITERT, LLAMA_CPP = VENDOR_PROGRAMS["litert"], VENDOR_PROGRAMS["llama.cpp"]
ARCHIVE = "b1/llama-b1-bin-android-arm64.tar.gz"


class Vendor:
    """A vendor's files, and the person who fetches them."""

    def __init__(self, folder: Path) -> None:
        self.published = folder / "published"
        self.published.mkdir()
        self.root = folder / "bundles"
        self.seen = folder / "state" / "digests.json"
        self.base = ""
        self.requests: list[str] = []
        self.said: list[str] = []

    def publish(self, path: str, content: bytes) -> None:
        (self.published / path).parent.mkdir(parents=True, exist_ok=True)
        (self.published / path).write_bytes(content)

    def fetch(self, text: str = "litert@2.1", *, sha256: str | None = None, **limits: int) -> LocalBundle:
        program, version = vendor_program(text)
        return self.fetch_from(program, version, sha256=sha256, **limits)

    def fetch_from(
        self, program: VendorProgram, version: str, *, sha256: str | None = None, **limits: int
    ) -> LocalBundle:
        return fetch_program(
            program,
            version,
            root=self.root,
            seen_path=self.seen,
            now=NOW,
            say=self.said.append,
            base=self.base,
            sha256=sha256,
            **limits,
        )

    def refused(
        self, kind: type[FarmError], text: str = "litert@2.1", sha256: str | None = None
    ) -> FarmError:
        with pytest.raises(kind) as caught:
            self.fetch(text, sha256=sha256)
        return caught.value

    def forget_files(self) -> None:
        """Delete the download, as a person does who wants it again."""
        (self.root / "litert-2.1-arm64-v8a" / "benchmark_model").unlink()


class Handler(SimpleHTTPRequestHandler):
    """Serves files, and one of them only by half."""

    def __init__(self, *arguments: object, vendor: Vendor, **options: object) -> None:
        self.vendor = vendor
        super().__init__(*arguments, directory=str(vendor.published), **options)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.vendor.requests.append(self.path)
        if self.path.startswith("/half"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"half")
            return
        super().do_GET()

    def log_message(self, format: str, *arguments: object) -> None:
        return


@pytest.fixture
def vendor(tmp_path: Path) -> Iterator[Vendor]:
    made = Vendor(tmp_path)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, vendor=made))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    made.base = f"http://127.0.0.1:{server.server_port}"
    made.publish("2.1/android_arm64/benchmark_model", b"program")
    try:
        yield made
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def archive_of(content_by_path: dict[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w:gz") as archive:
        for path, content in content_by_path.items():
            member = tarfile.TarInfo(path)
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return written.getvalue()


def test_the_first_download_is_trusted_and_that_is_told(vendor: Vendor) -> None:
    fetched = vendor.fetch()
    address = f"{vendor.base}/2.1/android_arm64/benchmark_model"
    assert (fetched.folder / "benchmark_model").read_bytes() == b"program"
    [part] = fetched.parts
    assert (part.version, part.digest, part.source) == (
        "2.1",
        digest_of(b"program"),
        address,
    )
    assert vendor.said[0] == f"downloading {address}"
    assert "no digest was stated or seen before" in vendor.said[1]
    assert digest_of(b"program") in vendor.said[2]


def test_what_is_here_is_not_downloaded_again_and_told_no_more(vendor: Vendor) -> None:
    vendor.fetch()
    vendor.said.clear()
    vendor.fetch()
    assert len(vendor.requests) == 1
    assert [line.partition(" ")[0] for line in vendor.said] == ["using"]


def test_another_file_at_the_same_address_is_refused_until_its_digest_is_stated(vendor: Vendor) -> None:
    vendor.fetch()
    vendor.publish("2.1/android_arm64/benchmark_model", b"changed")
    vendor.forget_files()
    error = vendor.refused(DigestMismatch)
    assert "is another file than on 2026-11-29" in error.message
    assert f"--sha256 {digest_of(b'changed')}" in error.hint
    vendor.fetch(sha256=digest_of(b"changed"))
    # What was stated is remembered in place of the former one.
    vendor.fetch()


def test_a_stated_digest_is_checked_and_needs_no_trust(vendor: Vendor) -> None:
    assert "was stated" in vendor.refused(DigestMismatch, sha256=digest_of(b"other")).message
    assert not vendor.seen.exists()
    vendor.said.clear()
    vendor.fetch(sha256=digest_of(b"program"))
    assert not [line for line in vendor.said if "warning" in line]
    assert "is no digest" in vendor.refused(InvalidInput, sha256="abc").message


def test_without_a_network_it_says_what_to_download_and_where_to_put_it(vendor: Vendor) -> None:
    vendor.base = "http://127.0.0.1:1"
    error = vendor.refused(InvalidInput)
    place = vendor.root / "litert-2.1-arm64-v8a" / "benchmark_model"
    assert "http://127.0.0.1:1/2.1/android_arm64/benchmark_model cannot be reached" in error.message
    assert f"put it at {place}" in error.hint
    assert not list(place.parent.iterdir())
    place.write_bytes(b"carried here")
    assert (vendor.fetch().folder / "benchmark_model").read_bytes() == b"carried here"


def test_a_version_that_the_vendor_does_not_have_is_told(vendor: Vendor) -> None:
    assert "answers 404" in vendor.refused(NotFound, "litert@9.9").message


def test_nothing_is_left_of_a_download_that_breaks_off(vendor: Vendor) -> None:
    vendor.base += "/half"
    assert "cannot be reached" in vendor.refused(InvalidInput).message
    assert not list((vendor.root / "litert-2.1-arm64-v8a").iterdir())


def test_a_file_that_is_too_large_is_not_kept(vendor: Vendor) -> None:
    with pytest.raises(InvalidInput, match="over 3 B"):
        vendor.fetch(max_bytes=3)
    assert not list((vendor.root / "litert-2.1-arm64-v8a").iterdir())


def test_a_program_of_an_archive_comes_with_the_libraries_beside_it(vendor: Vendor) -> None:
    contents = {
        "llama-b1/llama-bench": b"program",
        "llama-b1/libllama.so": b"library",
        "llama-b1/llama-server": b"another",
    }
    archive = archive_of(contents)
    vendor.publish(ARCHIVE, archive)
    fetched = vendor.fetch("llama.cpp@b1")
    assert sorted(path.name for path in fetched.folder.iterdir()) == ["libllama.so", "llama-bench"]
    assert fetched.env == {"LD_LIBRARY_PATH": "${work}"}
    assert fetched.parts[0].digest == digest_of(archive)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"no archive", "cannot be unpacked"),
        (archive_of({"llama-b1/llama-server": b"another"}), "has no llama-bench"),
        (archive_of({"../llama-bench": b"outside"}), "cannot be unpacked"),
    ],
)
def test_an_archive_that_cannot_be_used_is_told(vendor: Vendor, content: bytes, message: str) -> None:
    vendor.publish(ARCHIVE, content)
    assert message in vendor.refused(InvalidInput, "llama.cpp@b1").message
    assert not list(vendor.root.parent.glob("llama-bench"))


def test_damaged_memory_of_digests_trusts_nothing(vendor: Vendor) -> None:
    vendor.seen.parent.mkdir()
    vendor.seen.write_text("{")
    assert "cannot be read" in vendor.refused(InvalidInput).message


@pytest.mark.parametrize("text", ["litert", "litert@", "litert@../x", "llama.cpp@a b"])
def test_a_version_has_to_be_stated(text: str) -> None:
    with pytest.raises(InvalidInput, match="states no version") as caught:
        vendor_program(text)
    assert "@" in caught.value.hint


def test_an_unknown_vendor_is_refused_with_the_known_ones() -> None:
    with pytest.raises(NotFound, match="no vendor's address is known for `onnx`") as caught:
        vendor_program("onnx@1")
    assert "litert" in caught.value.hint


def test_addresses_of_the_table_are_those_of_the_vendors() -> None:
    assert LITERT.address("2.1.4").startswith("https://storage.googleapis.com/litert/binaries/2.1.4/")
    assert LLAMA_CPP.address("b1").endswith("/releases/download/b1/llama-b1-bin-android-arm64.tar.gz")


def test_a_digest_of_the_table_is_what_the_file_has_to_have(vendor: Vendor) -> None:
    content = archive_of({"llama-b1/llama-bench": b"program"})
    vendor.publish(ARCHIVE, content)
    known = replace(LLAMA_CPP, digests={"b1": digest_of(content)})
    vendor.fetch_from(known, "b1")
    assert not any("warning" in line for line in vendor.said)
    another = replace(LLAMA_CPP, digests={"b1": digest_of(b"another")})
    with pytest.raises(DigestMismatch, match=r"is known of llama\.cpp b1") as caught:
        vendor.fetch_from(another, "b1")
    assert "--sha256" in caught.value.hint
    # What a person states counts, whatever the table has.
    vendor.fetch_from(another, "b1", sha256=digest_of(content))


def test_digests_of_the_table_are_digests() -> None:
    digests = [digest for program in VENDOR_PROGRAMS.values() for digest in program.digests.values()]
    assert digests
    assert all(is_digest(digest) for digest in digests)
    assert LLAMA_CPP.example in LLAMA_CPP.digests
