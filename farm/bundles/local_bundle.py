"""A program's files on this machine, with what its registration states of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from farm.core.programs.built_with import ProgramPart
from farm.core.programs.bundle import PLAIN_COMMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalBundle:
    """A program that was built or fetched."""

    #: Of its files.
    folder: Path
    abi: str
    entry: str
    command: Sequence[str] = PLAIN_COMMAND
    env: Mapping[str, str] = field(default_factory=dict)
    parts: tuple[ProgramPart, ...]
