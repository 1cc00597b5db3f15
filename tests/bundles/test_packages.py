"""Packages of a build: what is downloaded is what was pinned, and what cannot be had is told with a hint."""

from collections.abc import Callable, Sequence
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from examples.llm import build_llama_bench
from farm.bundles.debian import unpack_debian
from farm.bundles.packages import download_package
from farm.bundles.recipes import llama_cpp
from farm.bundles.workshop import Workshop
from farm.core.base.ids import digest_of
from farm.core.errors import DigestMismatch, InvalidInput

Commands = Callable[[Sequence[str]], "CompletedProcess[str]"]


def workshop_of(folder: Path, run: Commands) -> Workshop:
    for name in ("out", "scratch"):
        (folder / name).mkdir()
    return Workshop(
        out=folder / "out",
        scratch=folder / "scratch",
        cache=folder / "cache",
        python=Path("/python"),
        run=run,
        say=lambda _: None,
    )


def pip_that_writes(content: bytes) -> Commands:
    def run(words: Sequence[str]) -> "CompletedProcess[str]":
        (Path(words[words.index("--dest") + 1]) / "thing-1.whl").write_bytes(content)
        return CompletedProcess(words, 0, "", "")

    return run


def failing(stderr: str) -> Commands:
    return lambda words: CompletedProcess(words, 1, "", stderr)


def test_a_package_becomes_a_part_with_the_digest_of_its_file(tmp_path: Path) -> None:
    workshop = workshop_of(tmp_path, pip_that_writes(b"wheel"))
    path, part = download_package(workshop, "thing", "1", digest_of(b"wheel"), ("--no-binary", "thing"))
    assert path.read_bytes() == b"wheel"
    assert (part.name, part.version, part.source) == ("thing", "1", "thing-1.whl")
    assert part.digest == digest_of(b"wheel")


def test_another_file_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    workshop = workshop_of(tmp_path, pip_that_writes(b"another"))
    with pytest.raises(DigestMismatch, match="is expected"):
        download_package(workshop, "thing", "1", digest_of(b"wheel"), ())


def test_an_index_that_cannot_be_reached_is_told_with_a_hint(tmp_path: Path) -> None:
    stderr = "WARNING: Retrying\nERROR: Could not find a version that satisfies the requirement thing==1\n"
    workshop = workshop_of(tmp_path, failing(stderr))
    with pytest.raises(InvalidInput, match="Could not find a version") as caught:
        download_package(workshop, "thing", "1", digest_of(b"wheel"), ())
    assert "check the network" in caught.value.hint


def test_apt_without_a_network_is_told_with_a_hint(tmp_path: Path) -> None:
    stderr = "W: something\nE: Failed to fetch http://deb.example  Could not resolve 'deb.example'\n"
    workshop = workshop_of(tmp_path, failing(stderr))
    with pytest.raises(InvalidInput, match="Could not resolve") as caught:
        unpack_debian(workshop, ("libc6",))
    assert "check the network" in caught.value.hint


def test_apt_without_packages_for_arm64_is_told(tmp_path: Path) -> None:
    workshop = workshop_of(tmp_path, lambda words: CompletedProcess(words, 0, "", ""))
    with pytest.raises(InvalidInput, match="have no packages for arm64"):
        unpack_debian(workshop, ("libc6",))


def test_llama_cpp_is_the_version_that_the_example_builds() -> None:
    example = (build_llama_bench.PACKAGE, build_llama_bench.VERSION, build_llama_bench.COMMIT)
    assert example == (llama_cpp.PACKAGE, llama_cpp.VERSION, llama_cpp.COMMIT)
