"""ELF files as small as they can be, made by hand: nothing in them runs."""

import struct
from collections.abc import Sequence

AARCH64, ARM, X86_64, I386, HEXAGON, SPARC = 183, 40, 62, 3, 164, 2
ANDROID_LOADER, DESKTOP_LOADER = "/system/bin/linker64", "/lib64/ld-linux-x86-64.so.2"
_TABLE_AT = 0x1000


def elf_file(
    machine: int = AARCH64,
    *,
    loader: str | None = ANDROID_LOADER,
    needed: Sequence[str] = (),
    runpath: str | None = None,
    fixed: bool = False,
    pie: bool = False,
    text: bytes = b"",
    bits: int | None = None,
) -> bytes:
    """A program, or with `loader=None` a library.

    Args:
        machine: of the header.
        loader: of PT_INTERP.
        needed: of DT_NEEDED.
        runpath: of DT_RUNPATH.
        fixed: ET_EXEC instead of ET_DYN.
        pie: DF_1_PIE, as static position-independent programs have it.
        text: further bytes, where a program keeps its strings.
        bits: 64 or 32; None is the machine's own.
    """
    is_wide = (bits or (64 if machine in (AARCH64, X86_64) else 32)) == 64
    head_size, row_size, rows = (64, 56, 3) if is_wide else (52, 32, 3)
    body_at = head_size + row_size * rows
    strings, offsets = _string_table([*needed, *([runpath] if runpath else [])])
    interpreter = b"" if loader is None else loader.encode() + b"\0"
    entries = [*((1, offset) for offset in offsets[: len(needed)]), (5, _TABLE_AT)]
    entries += [(29, offsets[-1])] if runpath else []
    entries += [(0x6FFFFFFB, 0x08000000)] if pie else []
    dynamic = b"".join(struct.pack("<QQ" if is_wide else "<II", *entry) for entry in [*entries, (0, 0)])
    strings_at = body_at + len(interpreter)
    dynamic_at = strings_at + len(strings)
    segments = (
        (3 if loader else 0, body_at, 0, len(interpreter)),
        (1, strings_at, _TABLE_AT, len(strings)),
        (2, dynamic_at, 0x2000, len(dynamic)),
    )
    table = b"".join(_segment(is_wide, *segment) for segment in segments)
    head = _head(is_wide, 2 if fixed else 3, machine, head_size, row_size, rows)
    return head + table + interpreter + strings + dynamic + b"\0" + text


def _head(is_wide: bool, kind: int, machine: int, head_size: int, row_size: int, rows: int) -> bytes:
    ident = b"\x7fELF" + bytes([2 if is_wide else 1, 1, 1]) + bytes(9)
    words = "<HHIQQQIHHHHHH" if is_wide else "<HHIIIIIHHHHHH"
    return ident + struct.pack(
        words, kind, machine, 1, 0, head_size, 0, 0, head_size, row_size, rows, 0, 0, 0
    )


def _segment(is_wide: bool, kind: int, offset: int, address: int, size: int) -> bytes:
    if is_wide:
        return struct.pack("<IIQQQQQQ", kind, 0, offset, address, address, size, size, 1)
    return struct.pack("<IIIIIIII", kind, offset, address, address, size, size, 0, 1)


def _string_table(texts: Sequence[str]) -> tuple[bytes, list[int]]:
    table, offsets = b"\0", []
    for text in texts:
        offsets.append(len(table))
        table += text.encode() + b"\0"
    return table, offsets
