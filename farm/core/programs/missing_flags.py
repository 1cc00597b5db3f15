"""Flags of an adapter that a registered program does not support."""

from collections.abc import Collection, Mapping

from farm.core.programs.binary_inspection import FileInspection

#: Compilers keep shorter names in the code itself, as numbers, where nobody finds them (16 bytes: two
#: registers of x86_64, more than AArch64 does).
MIN_TRACEABLE_LENGTH = 16


def find_missing_flags(
    flags: Collection[str], inspection_by_path: Mapping[str, FileInspection], entry: str
) -> frozenset[str] | None:
    """Return the flags without a trace in a program; None where its files are inconclusive.

    A short name that is not there is missing only where one as short is there.
    """
    telling = _conclusive_inspections(inspection_by_path, entry)
    found = frozenset[str]().union(*(look.flags.found for look in telling))
    if not found:
        return None
    shortest = [look.flags.shortest for look in telling if look.flags.shortest is not None]
    told = min([MIN_TRACEABLE_LENGTH, *shortest])
    return frozenset(name for name in flags if name not in found and len(name) >= told)


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
