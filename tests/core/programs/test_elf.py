"""What is read off binaries."""

import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.programs.elf import elf
from tests.support.models.elf_samples import (
    AARCH64,
    ANDROID_LOADER,
    ARM,
    HEXAGON,
    I386,
    SPARC,
    X86_64,
    elf_file,
)

TRUE = Path("/bin/true")


@pytest.mark.parametrize(
    ("machine", "abi"),
    [
        (AARCH64, "arm64-v8a"),
        (ARM, "armeabi-v7a"),
        (X86_64, "x86_64"),
        (I386, "x86"),
        (HEXAGON, None),
        (SPARC, None),
    ],
)
def test_the_abi_is_that_of_the_machine(machine: int, abi: str | None) -> None:
    found = elf(elf_file(machine))
    assert found is not None
    assert (found.abi, found.machine) == (abi, machine)


def test_code_of_32_bits_for_a_machine_of_64_is_no_abi_of_android() -> None:
    found = elf(elf_file(X86_64, bits=32))
    assert found is not None
    assert found.abi is None


def test_loader_libraries_and_path_are_read() -> None:
    for machine in (AARCH64, ARM):
        found = elf(elf_file(machine, needed=["libc.so", "libfoo.so"], runpath="$ORIGIN/lib"))
        assert found is not None
        assert found.interpreter == ANDROID_LOADER
        assert found.needed == ("libc.so", "libfoo.so")
        assert found.runpath == "$ORIGIN/lib"


@pytest.mark.parametrize(
    ("content", "is_program"),
    [
        (elf_file(), True),
        (elf_file(loader=None), False),
        (elf_file(loader=None, fixed=True), True),
        (elf_file(loader=None, pie=True), True),
    ],
    ids=["with a loader", "library", "static", "static, loaded anywhere"],
)
def test_a_program_is_told_from_a_library(content: bytes, is_program: bool) -> None:
    found = elf(content)
    assert found is not None
    assert found.is_program is is_program


@pytest.mark.skipif(not TRUE.is_file(), reason="no /bin/true here")
def test_a_real_program_of_this_machine_is_read() -> None:
    found = elf(TRUE.read_bytes())
    if found is None:
        pytest.skip("/bin/true is no binary here")
    assert found.is_program
    assert found.interpreter is None or found.interpreter.startswith("/")
    assert all(".so" in library for library in found.needed)


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x02\x02" + bytes(100)])
def test_what_is_no_elf_file_or_none_of_ours_is_none(content: bytes) -> None:
    assert elf(content) is None


def test_a_header_that_is_cut_short_is_none_or_says_less_and_never_fails() -> None:
    whole = elf_file(needed=["libfoo.so"], runpath="/x")
    for length in range(len(whole)):
        found = elf(whole[:length])
        assert found is None or found.abi == "arm64-v8a"


@given(st.binary(max_size=300), st.integers(0, 300))
def test_no_damage_makes_reading_fail(noise: bytes, at: int) -> None:
    whole = elf_file(needed=["libfoo.so"], runpath="/x")
    elf(whole[:at] + noise + whole[at + len(noise) :])
    elf(whole[:16] + noise)


def test_offsets_far_beyond_the_end_are_no_trouble() -> None:
    whole = bytearray(elf_file())
    whole[32:40] = struct.pack("<Q", 2**64 - 1)
    elf(bytes(whole))


def test_of_a_file_with_huge_names_and_tables_little_is_read() -> None:
    read = []

    class Content(bytes):
        def __getitem__(self, part: slice) -> bytes:  # type: ignore[override]
            read.append(len(super().__getitem__(part)))
            return super().__getitem__(part)

    whole = bytearray(elf_file())
    for row in range(64, 64 + 3 * 56, 56):
        whole[row + 8 : row + 16] = struct.pack("<Q", len(whole))
        whole[row + 32 : row + 40] = struct.pack("<Q", 1 << 40)
    program = elf(Content(whole + struct.pack("<QQ", 1, 1) * (1 << 20)))
    assert program is not None
    assert program.is_program
    assert sum(read) < 20_000_000
