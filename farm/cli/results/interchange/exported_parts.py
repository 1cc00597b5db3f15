"""Parts of an export: what is to be written, and the files of one part by month."""

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from itertools import islice
from pathlib import Path

from farm.cli.results.interchange.manifest import ExportManifest, Part, write_manifest
from farm.cli.results.interchange.row_files import UNFINISHED, RowFile, open_row_file
from farm.client.farm_client import FarmClient
from farm.core.base.ids import MatrixId
from farm.wire.base import Wire
from farm.wire.documents.results.export import (
    ConditionRow,
    DeviceRow,
    ExportChanges,
    MeasurementRow,
    SampleRow,
    SpeedupRow,
)
from farm.wire.documents.results.imports import ExternalResultView

#: A change may be visible so long after its time, at the end of a long transaction.
CHANGES_OVERLAP = timedelta(minutes=10)
_SAVE_EVERY_S = 2.0
_ROWS = 2000


class RowKind(StrEnum):
    """A kind of exported rows; the value is the name of its folder."""

    MEASUREMENTS = "measurements"
    SAMPLES = "samples"
    SPEEDUPS = "speedups"
    CONDITIONS = "conditions"
    DEVICES = "devices"
    EXTERNAL = "external"


#: The document and the column by whose month its files are apart; None: one file.
ROWS: dict[RowKind, tuple[type[Wire], str | None]] = {
    RowKind.MEASUREMENTS: (MeasurementRow, "measured_at"),
    RowKind.SAMPLES: (SampleRow, "measured_at"),
    RowKind.SPEEDUPS: (SpeedupRow, "measured_until"),
    RowKind.CONDITIONS: (ConditionRow, "measured_at"),
    RowKind.DEVICES: (DeviceRow, None),
    RowKind.EXTERNAL: (ExternalResultView, None),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedPart:
    """A part that is to be written."""

    number: int
    is_final: bool
    fetch: Callable[[], Iterable[Sequence[Wire]]]


@dataclass(slots=True, kw_only=True)
class Export:
    """An export of one kind of rows into a folder."""

    farm: FarmClient
    kind: RowKind
    folder: Path
    manifest: ExportManifest
    rows: int = 0
    files: int = 0
    _saved_at: float = field(default_factory=time.monotonic)

    def plan(self, changes: ExportChanges) -> list[PlannedPart]:
        """Return the parts that are missing, not final, or changed."""
        match self.kind:
            case RowKind.DEVICES:
                return [PlannedPart(number=0, is_final=False, fetch=self._devices)]
            case RowKind.EXTERNAL:
                return [PlannedPart(number=0, is_final=False, fetch=self._external)]
            case RowKind.SPEEDUPS:
                return list(self._matrices(set(changes.matrices)))
            case _:
                return list(self._blocks(changes))

    def write(self, part: PlannedPart) -> None:
        """Write the files of a part, and remove those that it has no more."""
        document, column = ROWS[self.kind]
        open_files: dict[Path, RowFile] = {}
        try:
            for rows in part.fetch():
                for name, own in _by_file(rows, column, part.number, self.manifest.format).items():
                    path = self.folder / name
                    if path not in open_files:
                        open_files[path] = open_row_file(self.manifest.format, path, document)
                    open_files[path].write(own)
        except BaseException:
            for file in open_files.values():
                file.discard()
            raise
        for file in open_files.values():
            file.finish()
        # As the folder has them: the manifest does not know what an export wrote that was killed.
        for gone in {*self.folder.rglob(_file_name(part.number, self.manifest.format))} - open_files.keys():
            gone.unlink(missing_ok=True)
        count = sum(file.rows for file in open_files.values())
        names = sorted(path.relative_to(self.folder).as_posix() for path in open_files)
        self.manifest.parts[part.number] = Part(files=names, rows=count, is_final=part.is_final)
        self.rows, self.files = self.rows + count, self.files + len(names)
        if time.monotonic() - self._saved_at >= _SAVE_EVERY_S:
            self.save()

    def clear_unfinished(self) -> None:
        """Remove files of which an export that was killed wrote a part only."""
        for path in self.folder.rglob(f".*{UNFINISHED}"):
            path.unlink(missing_ok=True)

    def save(self) -> None:
        """Write the manifest."""
        write_manifest(self.folder, self.manifest)
        self._saved_at = time.monotonic()

    def _is_due(self, number: int, changed: Iterable[int]) -> bool:
        known = self.manifest.parts.get(number)
        return known is None or not known.is_final or number in changed

    def _blocks(self, changes: ExportChanges) -> Iterator[PlannedPart]:
        size = self.manifest.block
        changed = set(changes.blocks)
        for number in range(changes.measurement_id // size + 1):
            if self._is_due(number, changed):
                is_final = changes.measurement_id >= (number + 1) * size - 1
                # What comes later may be the copy of a measurement on an earlier page, made in between.
                before = min((number + 1) * size, changes.measurement_id + 1)
                fetch = self._fetch_block(max(0, number * size - 1), before)
                yield PlannedPart(number=number, is_final=is_final, fetch=fetch)

    def _fetch_block(self, after: int, before: int) -> Callable[[], Iterable[Sequence[Wire]]]:
        asks: dict[RowKind, Callable[..., Iterable[Sequence[Wire]]]] = {
            RowKind.MEASUREMENTS: self.farm.exported_measurements,
            RowKind.SAMPLES: self.farm.exported_samples,
            RowKind.CONDITIONS: self.farm.exported_conditions,
        }
        ask, since, until = asks[self.kind], self.manifest.since, self.manifest.until
        return lambda: ask(after=after, before=before, since=since, until=until)

    def _matrices(self, changed: set[MatrixId]) -> Iterator[PlannedPart]:
        since, until = self.manifest.since, self.manifest.until
        for matrix in reversed(list(self.farm.matrices())):
            is_over = matrix.finished_at is not None
            too_old = since is not None and matrix.finished_at is not None and matrix.finished_at < since
            too_new = until is not None and matrix.created_at >= until
            if not (too_old or too_new) and self._is_due(matrix.matrix_id, changed):
                fetch = self._fetch_matrix(matrix.matrix_id)
                yield PlannedPart(number=matrix.matrix_id, is_final=is_over, fetch=fetch)

    def _fetch_matrix(self, matrix_id: MatrixId) -> Callable[[], Iterable[Sequence[Wire]]]:
        def fetch() -> Iterator[Sequence[Wire]]:
            rows = map(SpeedupRow.of_view, self.farm.speedups(matrix_id=matrix_id))
            wanted = (row for row in rows if self._is_wanted(row.measured_until))
            while page := list(islice(wanted, _ROWS)):
                yield page

        return fetch

    def _is_wanted(self, at: datetime) -> bool:
        since, until = self.manifest.since, self.manifest.until
        return (since is None or at >= since) and (until is None or at < until)

    def _devices(self) -> Iterator[Sequence[Wire]]:
        yield [DeviceRow.of_view(view) for view in self.farm.devices()]

    def _external(self) -> Iterator[Sequence[Wire]]:
        rows = self.farm.external_results()
        while page := list(islice(rows, _ROWS)):
            yield page


def _by_file(rows: Sequence[Wire], column: str | None, number: int, format: str) -> dict[str, list[Wire]]:
    if column is None:
        return {_file_name(number, format): list(rows)}
    by_month: defaultdict[str, list[Wire]] = defaultdict(list)
    for row in rows:
        month = getattr(row, column).astimezone(UTC).strftime("%Y-%m")
        by_month[f"month={month}/{_file_name(number, format)}"].append(row)
    return dict(by_month)


def _file_name(number: int, format: str) -> str:
    return f"part-{number:08}.{format}"
