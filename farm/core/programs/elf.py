"""Parser of ELF headers: CPU, interpreter, needed libraries.

From the System V ABI (gABI, chapters 4 and 5) and Android's list of ABIs. Little-endian files only: no
Android phone has others. pyelftools would not do: it rejects files whose section headers are damaged, which
Android runs, and reads names and tables without a limit (minutes and gigabytes for a hostile file).
"""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

_MAGIC = b"\x7fELF"
_ABI_BY_MACHINE = {
    (40, 32): "armeabi-v7a",
    (183, 64): "arm64-v8a",
    (3, 32): "x86",
    (62, 64): "x86_64",
    (243, 64): "riscv64",
}
#: The ABIs of Android, by which programs are registered.
ABIS = tuple(_ABI_BY_MACHINE.values())
_EXECUTABLE, _SHARED = 2, 3
_LOAD, _DYNAMIC, _INTERPRETER = 1, 2, 3
_END, _NEEDED, _STRINGS, _RPATH, _RUNPATH, _FLAGS_1 = 0, 1, 5, 15, 29, 0x6FFFFFFB
#: Of DT_FLAGS_1: a program that is loaded anywhere, without an interpreter where it is static.
_IS_PROGRAM = 0x08000000
_MAX_NAME = 4096
_MAX_TABLE = 65536


class Content(Protocol):
    """A file's bytes: `bytes` themselves, or a mapping of a file that is too big for that."""

    def __len__(self) -> int: ...
    def __getitem__(self, part: slice, /) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Elf:
    """An ELF file for a machine that runs little-endian code."""

    #: As Android names it; None for a machine that Android does not run on.
    abi: str | None
    machine: int
    bits: int
    #: It can be started; else it is a library, an object file or a core dump.
    is_program: bool
    #: Its loader: `/system/bin/linker64`; None for static programs and libraries.
    interpreter: str | None = None
    #: Libraries it wants, by name.
    needed: tuple[str, ...] = ()
    #: Folders that it searches for them first.
    runpath: str | None = None


def elf(content: Content) -> Elf | None:
    """Read a header; None for what is no ELF file, or one whose header is cut short or makes no sense."""
    try:
        return _elf(content)
    except (struct.error, ValueError, IndexError, OverflowError):
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Segment:
    kind: int
    offset: int
    address: int
    size: int


def _elf(content: Content) -> Elf | None:
    ident = content[0:16]
    if ident[:4] != _MAGIC or ident[4] not in (1, 2) or ident[5] != 1:
        return None
    bits = 64 if ident[4] == 2 else 32
    kind, machine = struct.unpack_from("<HH", content[16:20])
    segments = list(_segments(content, bits))
    interpreter = next((_text(content, part.offset) for part in segments if part.kind == _INTERPRETER), None)
    entries = list(_dynamic_entries(content, segments, bits))
    value_by_tag = dict(entries)
    starts = interpreter is not None or bool(value_by_tag.get(_FLAGS_1, 0) & _IS_PROGRAM)
    strings_at = _string_table_offset(segments, value_by_tag.get(_STRINGS, 0))
    names = [
        (tag, "" if strings_at is None else _text(content, strings_at + value))
        for tag, value in entries
        if tag in (_NEEDED, _RPATH, _RUNPATH)
    ]
    return Elf(
        abi=_ABI_BY_MACHINE.get((machine, bits)),
        machine=machine,
        bits=bits,
        is_program=kind == _EXECUTABLE or (kind == _SHARED and starts),
        interpreter=interpreter,
        needed=tuple(name for tag, name in names if tag == _NEEDED),
        runpath=next((name for tag, name in reversed(names) if tag != _NEEDED), None),
    )


def _segments(content: Content, bits: int) -> Iterator[_Segment]:
    """Yield the program headers at e_phoff, e_phentsize and e_phnum."""
    head = content[0:64]
    if bits == 64:
        (start,), (size, count) = struct.unpack_from("<Q", head, 32), struct.unpack_from("<HH", head, 54)
    else:
        (start,), (size, count) = struct.unpack_from("<I", head, 28), struct.unpack_from("<HH", head, 42)
    for number in range(count):
        row = content[start + number * size : start + (number + 1) * size]
        if bits == 64:
            kind, _, offset, address, _, in_file = struct.unpack_from("<IIQQQQ", row)
        else:
            kind, offset, address, _, in_file = struct.unpack_from("<IIIII", row)
        yield _Segment(kind=kind, offset=offset, address=address, size=in_file)


def _dynamic_entries(content: Content, segments: list[_Segment], bits: int) -> Iterator[tuple[int, int]]:
    """Yield tags and values of the dynamic section up to its end."""
    row = struct.Struct("<QQ" if bits == 64 else "<II")
    offset, size = next(((part.offset, part.size) for part in segments if part.kind == _DYNAMIC), (0, 0))
    table = content[offset : offset + min(size, _MAX_TABLE)]
    rows = row.iter_unpack(table[: len(table) // row.size * row.size])
    return takewhile(lambda entry: entry[0] != _END, rows)


def _string_table_offset(segments: list[_Segment], address: int) -> int | None:
    """Return where the string table begins in the file; its own address is one in memory."""
    return next(
        (
            part.offset + address - part.address
            for part in segments
            if part.kind == _LOAD and part.address <= address < part.address + part.size
        ),
        None,
    )


def _text(content: Content, at: int) -> str:
    return content[at : at + _MAX_NAME].split(b"\0", 1)[0].decode(errors="replace")
