"""`farm export`: measurements and what belongs to them as files for other tools."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from farm.cli.results.interchange.exported_parts import CHANGES_OVERLAP, Export, PlannedPart, RowKind
from farm.cli.results.interchange.manifest import ExportManifest, check_same, read_manifest
from farm.cli.results.interchange.row_files import FileFormat, parquet_modules
from farm.cli.shell.address import connect
from farm.cli.shell.options import Json
from farm.cli.shell.output import err, print_done
from farm.core.errors import InvalidInput
from farm.presentation.text import past_moment, plural


def export(
    kind: Annotated[
        RowKind,
        typer.Argument(
            metavar="KIND", help="measurements, samples, speedups, conditions, devices or external."
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The files go into a folder KIND below it.")
    ],
    format: Annotated[
        FileFormat | None,
        typer.Option(
            "--format", help="Default: that of the folder, else parquet, which needs benchfarm[export]."
        ),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="DATE", help="Only what was measured since: 2026-03-01, 12h, 30d or 1y."),
    ] = None,
    until: Annotated[
        str | None, typer.Option(metavar="DATE", help="Only what was measured before: like --since.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Export measurements, samples, speedups, conditions, devices or results of others as files.

    Files lie in folders by month, which DuckDB, polars and pandas read as one table. The same command
    continues: it adds what is new, writes again what was retracted or parsed again, and goes on where it was
    interrupted.

    Example: farm export measurements --out results --format parquet
    """
    begin, end = past_moment(since, option="--since"), past_moment(until, option="--until")
    if begin and end and begin >= end:
        raise InvalidInput("--since is not before --until: nothing lies between", hint="exchange them")
    try:
        done = _export(kind, out / kind, format, begin, end)
    except OSError as error:
        raise InvalidInput(
            f"{out / kind} cannot be written: {error.strerror or error}",
            hint="name a folder on a disk with space, where you may write; the same command continues",
        ) from error
    written = f"{plural(done.rows_written, 'row')} written to {plural(done.files_written, 'file')}"
    text = f"{done.folder}: {plural(done.rows, 'row')}; {written}."
    print_done(asdict(done), text, as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    kind: RowKind
    folder: str
    rows_written: int
    files_written: int
    #: With those of earlier calls.
    rows: int


def _export(
    kind: RowKind, folder: Path, format: FileFormat | None, begin: datetime | None, end: datetime | None
) -> _Written:
    known = read_manifest(folder)
    chosen = format or (known.format if known else FileFormat.PARQUET)
    if chosen is FileFormat.PARQUET:
        parquet_modules()
    with connect() as farm:
        changes = (
            farm.export_changes()
            if known is None
            else farm.export_changes(after=known.measurement_id, since=known.as_of - CHANGES_OVERLAP)
        )
        asked = ExportManifest(
            kind=kind,
            format=chosen,
            since=begin,
            until=end,
            epoch=changes.epoch,
            block=changes.block,
            as_of=changes.as_of,
            measurement_id=changes.measurement_id,
            parts={},
        )
        if known is not None:
            check_same(known, asked, folder)
        export = Export(farm=farm, kind=kind, folder=folder, manifest=known or asked)
        export.save()
        export.clear_unfinished()
        try:
            for part in _with_progress(export.plan(changes)):
                export.write(part)
            # Only now: until here, what changed may be missing in a final part.
            export.manifest.as_of, export.manifest.measurement_id = changes.as_of, changes.measurement_id
        finally:
            export.save()
    return _Written(
        kind=kind,
        folder=str(folder),
        rows_written=export.rows,
        files_written=export.files,
        rows=sum(part.rows for part in export.manifest.parts.values()),
    )


def _with_progress(parts: Sequence[PlannedPart]) -> Iterator[PlannedPart]:
    """Yield parts, and show on a terminal how many are done."""
    from rich.progress import track

    yield from track(
        parts, description="exporting", console=err(), transient=True, disable=not err().is_terminal
    )
