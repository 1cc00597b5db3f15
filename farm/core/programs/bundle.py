"""A bundle: the files of a harness's program for one ABI, how they are started together, and its rules.

Paths are below the run's folder, variables and a command can be filled in. The farm checks this itself,
whatever a client has checked before.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from string import Template

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import InvalidInput
from farm.core.runs.plan import PlanFile, folders_of, path_problem

#: Words of a bundle's command: the started file, and all that the adapter has to say to it.
PROGRAM_WORD, ARGUMENTS_WORD = "${program}", "${arguments}"
PLAIN_COMMAND = (PROGRAM_WORD, ARGUMENTS_WORD)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """A file of a registered program."""

    #: Below the run's folder: `lib/libfoo.so`.
    path: str
    digest: Digest
    executable: bool = False
    size_bytes: int


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


#: Each is a link that the phone makes before every run; and a command line of adb names them all.
MAX_FILES = 400
MAX_BUNDLE_BYTES = 4 * 1024**3
MAX_VARIABLES = MAX_WORDS = 50
MAX_TEXT = 4000

#: Files of the supervisor and the agent in a run's folder; each is first written as `NAME.new`.
RUN_FILES = frozenset(
    {
        *("run.sh", "run.trace", "lock", "supervisor", "supervisor.log", "harness"),
        *("stdout", "stderr", "timed_out", "exit"),
    }
)
#: The supervisor finds a run's processes by these.
_OWN_VARIABLES = "BENCHFARM_"

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}", re.ASCII)


def check_bundle(bundle: Bundle) -> None:
    """Refuse a bundle that no phone could be given.

    Raises:
        InvalidInput: a path, the started file, a variable or the command cannot be.
    """
    problem = next(_problems(bundle), None)
    if problem is not None:
        message, hint = problem
        raise InvalidInput(message, hint=hint)


_Problem = tuple[str, str]


def _problems(bundle: Bundle) -> Iterator[_Problem]:
    paths = [file.path for file in bundle.files]
    yield from _bad_sizes(bundle)
    yield from _bad_paths(paths)
    yield from _bad_entry(bundle)
    yield from _bad_variables(bundle.env)
    yield from _bad_command(bundle.command)


def _bad_sizes(bundle: Bundle) -> Iterator[_Problem]:
    if not bundle.files:
        yield "a bundle has one file at least", "name a file, or a folder with the program in it"
    if len(bundle.files) > MAX_FILES:
        yield f"{len(bundle.files)} files, a bundle has at most {MAX_FILES}", "put data into one archive"
    if bundle.size_bytes > MAX_BUNDLE_BYTES:
        yield f"a bundle has at most {MAX_BUNDLE_BYTES} bytes", "leave out what the program does not need"


def _bad_paths(paths: Sequence[str]) -> Iterator[_Problem]:
    for path in paths:
        if why := path_problem(path):
            yield f"the path {path[:80]!r} {why}", "paths are like `lib/libfoo.so`"
        elif len(paths) > 1 and path.partition("/")[0].removesuffix(".new") in RUN_FILES:
            names = ", ".join(sorted(RUN_FILES))
            yield f"`{path}` is a name that every run needs itself", f"rename it; taken are {names}"
    folders = folders_of(paths)
    for path in sorted(paths):
        if path in folders or paths.count(path) > 1:
            yield f"`{path}` is there twice", "each path is one file, and no folder"


def _bad_entry(bundle: Bundle) -> Iterator[_Problem]:
    started = next((file for file in bundle.files if file.path == bundle.entry), None)
    if started is None:
        paths = ", ".join(sorted(file.path for file in bundle.files)[:12])
        yield f"`{bundle.entry}` is to be started and is not in the bundle", f"it has {paths}"
    elif not started.executable:
        yield f"`{bundle.entry}` is to be started and is not executable", "mark it so"


def _bad_variables(env: Mapping[str, str]) -> Iterator[_Problem]:
    if len(env) > MAX_VARIABLES:
        yield f"{len(env)} environment variables, at most {MAX_VARIABLES}", "use a file instead"
    for name, value in env.items():
        if not _VARIABLE.fullmatch(name):
            yield f"{name[:80]!r} is no name of a variable", "letters, digits and _"
        elif name.startswith(_OWN_VARIABLES):
            yield f"{name} is the farm's own variable", "use another name"
        elif why := _placeholder_problem(value):
            yield f"the value of {name} {why}", _PLACEHOLDER_HINT


def _bad_command(words: Sequence[str]) -> Iterator[_Problem]:
    if len(words) > MAX_WORDS:
        yield f"the command has {len(words)} words, at most {MAX_WORDS}", "use a script instead"
    for needed in (PROGRAM_WORD, ARGUMENTS_WORD):
        if words.count(needed) != 1:
            yield (
                f"the command needs {needed} as a word of its own, once",
                "for instance: 'taskset f0 ${program} ${arguments}', in single quotes",
            )
    for word in words:
        if word not in (PROGRAM_WORD, ARGUMENTS_WORD) and (why := _placeholder_problem(word)):
            yield f"the word {word[:80]!r} of the command {why}", _PLACEHOLDER_HINT


_PLACEHOLDER_HINT = "only ${work} is filled in there, the run's folder; a literal dollar is $$"


def _placeholder_problem(text: str) -> str | None:
    if len(text) > MAX_TEXT:
        return f"is longer than {MAX_TEXT} letters"
    if not text.isprintable():
        return "holds a control character, or one that is no text"
    template = Template(text)
    if not template.is_valid():
        return "has a dollar that begins no placeholder"
    others = [name for name in template.get_identifiers() if name != "work"]
    return f"has ${{{others[0]}}}, which nothing fills" if others else None
