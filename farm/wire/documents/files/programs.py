"""Documents about harnesses and programs."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from farm.core.base.ids import Digest
from farm.core.base.setting_values import SettingValue
from farm.core.programs.built_with import MAX_PARTS, ProgramPart
from farm.core.programs.bundle import PLAIN_COMMAND, BundleFile
from farm.core.programs.harness_name import HARNESS_NAME
from farm.wire.base import Wire

#: As matrices name it.
HarnessName = Annotated[str, Field(pattern=HARNESS_NAME)]
Text = Annotated[str, Field(max_length=4096)]


class BundleFileSpec(Wire):
    """A file of a program: its bytes go to PUT /api/v1/blobs/{digest} first."""

    path: Text
    digest: Digest
    executable: bool = False


class ProgramRegistration(Wire):
    """POST /api/v1/harnesses: the program that new matrices of a harness run on phones of one ABI."""

    name: HarnessName
    #: Detected from the files if None.
    abi: Text | None = None
    files: Annotated[tuple[BundleFileSpec, ...], Field(min_length=1, max_length=10_000)]
    #: The file that is started.
    entry: Text
    env: Annotated[dict[Text, Text], Field(max_length=1000)] = Field(default_factory=dict)
    command: Annotated[tuple[Text, ...], Field(max_length=1000)] = PLAIN_COMMAND
    #: The definition of a generic harness.
    definition: dict[str, Any] | None = None
    #: What it was built from, as far as that is known.
    built_with: Annotated[tuple[ProgramPart, ...], Field(max_length=MAX_PARTS)] = ()


class ProgramView(Wire):
    """GET /api/v1/harnesses: a program registered for one ABI."""

    name: str
    #: `any` for scripts.
    abi: str
    digest: Digest
    #: All files together.
    size_bytes: int
    files: tuple[BundleFile, ...]
    entry: str
    env: dict[str, str]
    command: tuple[str, ...]
    #: Flags of the harness that it does not know.
    missing_flags: tuple[str, ...]
    #: What it was built from; empty if that was not stated.
    built_with: tuple[ProgramPart, ...] = ()
    #: New matrices run it on phones of its ABI.
    in_use: bool
    #: A file of it has expired: it must be registered again to be run.
    expired: bool = False
    created_at: datetime
    #: Time of the last registration.
    chosen_at: datetime


class ProgramWarningView(Wire):
    """Something that will probably go wrong."""

    message: str
    hint: str


class RegisteredProgramView(Wire):
    """The answer to a registration."""

    program: ProgramView
    #: The program that new matrices ran until now; None where it is the same one, or there was none.
    replaces: ProgramView | None
    #: It was registered before.
    was_registered: bool
    notes: tuple[ProgramWarningView, ...]


class FlagView(Wire):
    """One setting of a harness."""

    name: str
    default: SettingValue
    help: str
    minimum: int | None
    maximum: int | None = None
    #: The only values; empty where any value of its type will do.
    choices: tuple[str, ...] = ()


class AdapterView(Wire):
    """GET /api/v1/adapters: a harness that the farm can read, with or without a program."""

    name: str
    #: Formats of model files that it runs.
    formats: tuple[str, ...]
    backends: tuple[str, ...]
    parser_version: int
    #: For which ABIs a program is registered.
    abis: tuple[str, ...]


class HarnessView(Wire):
    """GET /api/v1/harnesses/{name}: a harness with its programs."""

    name: str
    #: The part of a run that the measurement's clock covers.
    clock_covers: str
    parser_version: int
    needs_model: bool
    #: Formats of model files that it runs; empty where it does not distinguish formats.
    formats: tuple[str, ...] = ()
    backends: tuple[str, ...]
    #: Names of the metrics that it may print besides the time; `*` at the end stands for any text.
    metrics: tuple[str, ...]
    flags: tuple[FlagView, ...]
    programs: tuple[ProgramView, ...]
    #: The definition of a generic harness; None where the farm has a built-in adapter.
    definition: dict[str, Any] | None
