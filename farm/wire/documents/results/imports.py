"""Results that others measured: files that are imported, and the numbers in them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated

from pydantic import Base64Bytes, Field

from farm.core.base.ids import Digest
from farm.wire.base import Count, Wire
from farm.wire.documents.results.export import JsonText

_GivenName = Annotated[str, Field(min_length=1, max_length=200)]


class ImportRequest(Wire):
    """POST /api/v1/imports: a file, and what is known of it beside."""

    name: Annotated[str, Field(min_length=1, max_length=500)]
    #: The bytes of the file in base64.
    content: Base64Bytes
    #: The harness whose output it is; `null`: its format is recognized.
    harness: _GivenName | None = None
    #: Where the file does not say.
    device: _GivenName | None = None
    model: _GivenName | None = None
    #: Read it, and store nothing.
    dry_run: bool = False


class ImportOutcome(StrEnum):
    """What became of a file."""

    IMPORTED = "imported"
    #: A file with the same bytes was imported before.
    DUPLICATE = "duplicate"
    #: A dry run found nothing against it.
    IMPORTABLE = "importable"


class ImportAnswer(Wire):
    """What became of a file that was sent."""

    outcome: ImportOutcome
    #: Of a duplicate, the earlier import.
    import_id: Count | None
    #: SHA-256 of the file.
    digest: Digest
    format: str
    #: The number of results in it.
    results: Count
    #: What was left out, and why; and what was given beside the file.
    notes: list[str]


class ImportView(Wire):
    """A file that was imported."""

    import_id: Count
    name: str
    #: SHA-256 of the file.
    digest: Digest
    size_bytes: Count
    format: str
    #: Whose adapter read it, where that was said.
    harness: str | None
    #: The number of results in it.
    results: Count
    #: What was left out, and why; and what was given beside the file.
    notes: list[str]
    imported_at: datetime
    imported_by: str
    withdrawn_at: datetime | None
    withdrawn_by: str | None
    #: Why it was withdrawn.
    reason: str | None


class WithdrawalRequest(Wire):
    """POST /api/v1/imports/{import_id}/withdrawal: why a file's results are not to be shown any more."""

    reason: Annotated[str, Field(min_length=1, max_length=500)]


class ExternalResultView(Wire):
    """A number that others measured, as its file tells it. It enters no comparison."""

    result_id: int
    import_id: int
    #: The name of the imported file.
    file: str
    format: str
    tool: str
    tool_version: str | None
    model: str | None
    #: As the file calls it, or the import; no device of this farm.
    device: str | None
    os: str | None
    backend: str | None
    #: The file's name of the quantity.
    metric: str
    #: In `unit`, as minimum, maximum, deviation and samples are.
    value: float
    #: As the file has it.
    unit: str | None
    #: What the value is of several runs: `mean`, `median`, `p5`, `p95`; `value`: the file does not say.
    statistic: str
    #: The part of a run that the clock covers.
    clock_covers: str | None
    sample_count: int | None
    minimum: float | None
    maximum: float | None
    #: The standard deviation of the runs.
    deviation: float | None
    samples: JsonText | None
    #: The text of the file.
    date: str | None
    #: What else the file says.
    settings: JsonText
    imported_at: datetime
    imported_by: str
    #: The time at which it was withdrawn.
    withdrawn_at: datetime | None
