"""Inspection of program files by content: a binary and its CPU, a script, or another kind; missing flags."""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from farm.core.programs.elf import Content, Elf, elf

#: Scripts are searched for flags up to here; what is longer is data.
MAX_SCRIPT_BYTES = 4 * 1024 * 1024
_PIECE_BYTES = 4 * 1024 * 1024
_LONGEST_SIGN = 256

_UNSUPPORTED: Mapping[bytes, str] = {
    b"\xcf\xfa\xed\xfe": "a program for macOS or iOS",
    b"\xce\xfa\xed\xfe": "a program for macOS or iOS",
    b"\xfe\xed\xfa\xcf": "a program for macOS or iOS",
    b"\xfe\xed\xfa\xce": "a program for macOS or iOS",
    b"\xca\xfe\xba\xbe": "a program for macOS or iOS, or a Java class",
    b"MZ": "a program for Windows",
    b"PK\x03\x04": "a zip archive (an APK, a JAR, a model)",
    b"dex\n": "Android byte code, which needs an app around it",
    b"\x7fELF": "a binary whose header is damaged, or for a CPU that Android does not run on",
}
#: A shell script that hands all its arguments on says nothing of the flags that the other end knows.
_FORWARDS = re.compile(rb'"?\$[@*]|"?\$\{[@*]')


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagTraces:
    """Traces of flags in one file."""

    found: frozenset[str] = frozenset()
    #: Letters of the shortest name that stands there as a text of its own.
    shortest: int | None = None
    #: It hands its arguments on, to whatever it starts.
    forwards: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInspection:
    """The kind of a file; at most one of `elf`, `interpreter` and `unsupported` is set."""

    elf: Elf | None = None
    #: Of a script: the rest of its `#!` line, with the carriage return of Windows where it has one.
    interpreter: str | None = None
    #: In words: what else it is, that no Android phone can start.
    unsupported: str | None = None
    flags: FlagTraces = FlagTraces()

    @property
    def is_program(self) -> bool:
        """Tell whether the file can be started."""
        return self.interpreter is not None or (self.elf is not None and self.elf.is_program)


def inspect_file(content: Content, flags: Collection[str] = ()) -> FileInspection:
    """Tell a file from its content, and which of these flags it shows traces of."""
    head = content[0:512]
    if (binary := elf(content)) is not None:
        return FileInspection(elf=binary, flags=_flags_of_binary(content, flags))
    if head.startswith(b"#!"):
        line = head[2:].partition(b"\n")[0].decode(errors="replace")
        return FileInspection(interpreter=line.strip(" \t"), flags=_flags_of_text(content, flags))
    unsupported = next((kind for magic, kind in _UNSUPPORTED.items() if head.startswith(magic)), None)
    text = _flags_of_text(content, flags) if unsupported is None and b"\0" not in head else FlagTraces()
    return FileInspection(unsupported=unsupported, flags=text)


def _flags_of_binary(content: Content, flags: Collection[str]) -> FlagTraces:
    """Find flags: a flag library ends each name with NUL; a linker may merge it into another's tail.

    c10's flags show in the name of each flag's parser class, too.
    """
    traced: set[str] = set()
    alone: set[str] = set()
    for start in range(0, len(content), _PIECE_BYTES):
        # Each piece with the beginning of the next, so that a name across the border is in one of them.
        piece = content[start : start + _PIECE_BYTES + _LONGEST_SIGN]
        for name in flags:
            text = name.encode()
            if name not in alone and b"%b\0" % text in piece:
                traced.add(name)
                alone |= {name} if b"\0%b\0" % text in piece else set()
            elif name not in traced and b"FlagParser_%bE" % text in piece:
                traced.add(name)
    return FlagTraces(found=frozenset(traced), shortest=min(map(len, alone), default=None))


def _flags_of_text(content: Content, flags: Collection[str]) -> FlagTraces:
    text = content[0:MAX_SCRIPT_BYTES]
    words = set(re.findall(rb"[A-Za-z0-9_]+", text)) if flags else set()
    traced = frozenset(name for name in flags if name.encode() in words)
    return FlagTraces(found=traced, shortest=1 if traced else None, forwards=bool(_FORWARDS.search(text)))


#: Compilers keep shorter names in the code itself, as numbers, where no search finds them (16 bytes: two
#: registers of x86_64, more than AArch64 does).
MIN_TRACEABLE_LENGTH = 16


def find_missing_flags(
    flags: Collection[str], inspection_by_path: Mapping[str, FileInspection], entry: str
) -> frozenset[str] | None:
    """Return the flags without a trace in a program; None where its files are inconclusive.

    A short name that is not there is missing only where one as short is there.
    """
    telling = _conclusive_inspections(inspection_by_path, entry)
    traced = frozenset[str]().union(*(look.flags.found for look in telling))
    if not traced:
        return None
    shortest = [look.flags.shortest for look in telling if look.flags.shortest is not None]
    min_length = min([MIN_TRACEABLE_LENGTH, *shortest])
    return frozenset(name for name in flags if name not in traced and len(name) >= min_length)


def _conclusive_inspections(
    inspection_by_path: Mapping[str, FileInspection], entry: str
) -> list[FileInspection]:
    """Return binaries that know any flag at all; else the started script and the texts beside it.

    A page of help that lies beside a binary says nothing of what the binary knows, and a script that hands
    its arguments on says nothing of what the other end knows.
    """
    looks = list(inspection_by_path.values())
    binaries = [look for look in looks if look.elf is not None and look.flags.found]
    if binaries:
        return binaries
    started = inspection_by_path[entry]
    if started.interpreter is None or started.flags.forwards:
        return []
    return [look for look in looks if look.elf is None]
