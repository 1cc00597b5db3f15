"""Parts that a program was built from or taken from: packages, compilers, sources and archives."""

from dataclasses import dataclass

from farm.core.base.ids import Digest

#: Of one program: a build names the packages that it links, and its compiler.
MAX_PARTS = 100
#: Letters in the name, version or source of a part.
MAX_PART_TEXT = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramPart:
    """One part. The digest is the SHA-256 of the file in which the part was published."""

    name: str
    version: str
    digest: Digest
    #: The name of that file, or the address it was downloaded from.
    source: str
