"""A bundle: the files of a harness's program for one ABI, and how they are started together."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from farm.core.base.ids import Digest, digest_of
from farm.core.runs.plan import PlanFile

#: Words of a bundle's command: the started file, and all that the adapter has to say to it.
PROGRAM_WORD, ARGUMENTS_WORD = "${program}", "${arguments}"
PLAIN_COMMAND = (PROGRAM_WORD, ARGUMENTS_WORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """One file, where it lies below the run's folder: `lib/libfoo.so`."""

    path: str
    digest: Digest
    size_bytes: int
    executable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """Files with their environment. The started file is one of them."""

    files: tuple[BundleFile, ...]
    #: Path of the file that is started.
    entry: str
    #: `${work}` in a value is the run's folder: `LD_LIBRARY_PATH=${work}/lib`.
    env: Mapping[str, str] = field(default_factory=dict)
    #: `taskset f0 ${program} ${arguments}`, a word each; `${arguments}` stands for any number of words.
    command: tuple[str, ...] = PLAIN_COMMAND

    @property
    def size_bytes(self) -> int:
        """Return the size of all files together."""
        return sum(file.size_bytes for file in self.files)


def single_file(path: str, digest: Digest, size_bytes: int) -> Bundle:
    """Return the bundle of a program with one file."""
    file = BundleFile(path=path, digest=digest, size_bytes=size_bytes, executable=True)
    return Bundle(files=(file,), entry=path)


def bundle_digest(bundle: Bundle) -> Digest:
    """Return a program's version: a single plain file's own digest, so that wrapping changes nothing."""
    if len(bundle.files) == 1 and not bundle.env and bundle.command == PLAIN_COMMAND:
        return bundle.files[0].digest
    identity = {
        "files": sorted((file.path, file.digest, file.executable) for file in bundle.files),
        "entry": bundle.entry,
        "env": dict(bundle.env),
        "command": bundle.command,
    }
    return digest_of(json.dumps(identity, sort_keys=True, separators=(",", ":")).encode())


def plan_files(bundle: Bundle) -> tuple[PlanFile, ...]:
    """Return the files as a run plan lists them, the started one first, named `program`."""
    ordered = sorted(bundle.files, key=lambda file: (file.path != bundle.entry, file.path))
    return tuple(
        PlanFile(
            name="program" if file.path == bundle.entry else f"part_{number}",
            digest=file.digest,
            size_bytes=file.size_bytes,
            executable=file.executable,
            path=file.path if len(ordered) > 1 else "",
        )
        for number, file in enumerate(ordered)
    )


def command_words(bundle: Bundle, arguments: Sequence[str]) -> tuple[str, ...]:
    """Return the bundle's command with an adapter's arguments, in the placeholders of run plans.

    A bundle of several files is started by its path below the run's folder, so that a program that looks
    beside itself finds its other files.
    """
    program = "${file_program}" if len(bundle.files) == 1 else "${work}/" + bundle.entry.replace("$", "$$")
    words: list[str] = []
    for word in bundle.command:
        if word == ARGUMENTS_WORD:
            words += arguments
        else:
            words.append(program if word == PROGRAM_WORD else word)
    return tuple(words)
