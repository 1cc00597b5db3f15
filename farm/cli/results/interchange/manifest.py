"""The manifest of an export: which parts its files hold, and up to when they are known to be right."""

from datetime import datetime
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from farm.cli.results.interchange.row_files import UNFINISHED, FileFormat
from farm.core.errors import Conflict, InvalidInput

MANIFEST = "_manifest.json"
_ELSEWHERE = "name another folder with --out"


class Part(BaseModel):
    """A part of the rows: a block of measurements, or a matrix."""

    model_config = ConfigDict(extra="forbid")

    #: Below the folder of the manifest.
    files: list[str]
    rows: int
    #: Nothing is added to it any more: it changes only by a reparse or a retraction.
    is_final: bool


class ExportManifest(BaseModel):
    """What a folder holds, of one kind of rows."""

    model_config = ConfigDict(extra="forbid")

    kind: str
    format: FileFormat
    since: datetime | None
    until: datetime | None
    #: The history of the farm's database.
    epoch: str
    #: Measurements whose files are written together.
    block: int
    #: What changed later may be missing in final parts; and the number of the last measurement then.
    as_of: datetime
    measurement_id: int
    parts: dict[int, Part]


def read_manifest(folder: Path) -> ExportManifest | None:
    """Return the manifest of a folder; None where nothing was exported yet.

    Raises:
        Conflict: it is not a manifest, or there are files without one.
    """
    path = folder / MANIFEST
    try:
        return ExportManifest.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        if folder.is_dir() and any(not entry.name.startswith(".") for entry in folder.iterdir()):
            raise Conflict(f"{folder} has files that no export wrote", hint=_ELSEWHERE) from None
        return None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]["msg"]
        raise Conflict(f"{path} cannot be read: {first}", hint=_ELSEWHERE) from error


def write_manifest(folder: Path, manifest: ExportManifest) -> None:
    """Write the manifest of a folder; the file is replaced when it is whole."""
    folder.mkdir(parents=True, exist_ok=True)
    unfinished = folder / f".{MANIFEST}{UNFINISHED}"
    unfinished.write_text(manifest.model_dump_json(), encoding="utf-8")
    unfinished.replace(folder / MANIFEST)


def check_same(manifest: ExportManifest, asked: ExportManifest, folder: Path) -> None:
    """Refuse to go on with an export of something else.

    Raises:
        InvalidInput: format or span of time are others; a span that is left out is the one before.
        Conflict: the rows are another farm's, or of the time before a restore.
    """
    if manifest.format is not asked.format:
        raise InvalidInput(
            f"{folder} has files of the format {manifest.format}, not {asked.format}", hint=_ELSEWHERE
        )
    for name in ("since", "until"):
        before, now = getattr(manifest, name), getattr(asked, name)
        if now is not None and now != before:
            span = "all times" if before is None else f"--{name} {before.isoformat()}"
            raise InvalidInput(
                f"{folder} was exported with {span}",
                hint=f"leave --{name} out to go on with that, or {_ELSEWHERE}",
            )
    if manifest.epoch != asked.epoch or manifest.block != asked.block:
        raise Conflict(
            f"{folder} was exported from another farm or release, or before the database was restored",
            hint=f"export everything again: {_ELSEWHERE}",
        )
