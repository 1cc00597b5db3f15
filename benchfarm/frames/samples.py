"""Every iteration of the runs of a matrix, as columns that hold a million of them."""

from array import array
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar

from benchfarm.frames.arrow import ColumnData, ColumnType
from benchfarm.frames.frame import ArrowColumns, FrameColumn
from benchfarm.frames.setup_columns import device_columns, integer, moment, setup_columns, text
from farm.client.farm_client import FarmClient
from farm.core.base.ids import CellId, MatrixId
from farm.core.runs.samples import decode_samples
from farm.wire.documents.results.samples import SampledCell, SampledRun

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledAttempt:
    """One run with its samples in nanoseconds, in the order they ran; none where the tool printed none."""

    cell: SampledCell
    run: SampledRun
    samples_ns: "array[int]"


class Samples(ArrowColumns):
    """The runs of a matrix, whose frame has one row an iteration: `time_ms`, and what the run was.

    Runs of which the tool printed a summary only have no rows in the frame.
    """

    def __init__(self, attempts: Sequence[SampledAttempt], *, as_of: datetime) -> None:
        self.attempts = tuple(attempts)
        #: The time of the question.
        self.as_of = as_of

    def __getitem__(self, index: int) -> SampledAttempt:
        return self.attempts[index]

    def __len__(self) -> int:
        return len(self.attempts)

    def __iter__(self) -> Iterator[SampledAttempt]:
        return iter(self.attempts)

    @property
    def sample_count(self) -> int:
        """Return the number of samples."""
        return sum(len(attempt.samples_ns) for attempt in self.attempts)

    def __repr__(self) -> str:
        return f"<Samples: {self.sample_count} of {len(self)} runs, as of {self.as_of:%Y-%m-%d %H:%M:%S} UTC>"

    @cached_property
    def column_data(self) -> Mapping[str, ColumnData]:
        """Return the columns by name; what is the same for a run is kept once for it."""
        places, iterations = array("i"), array("q")
        times_ms = array("d")
        for place, attempt in enumerate(self.attempts):
            count = len(attempt.samples_ns)
            places += array("i", [place]) * count
            iterations += array("q", range(count))
            times_ms += array("d", [sample_ns / 1e6 for sample_ns in attempt.samples_ns])
        own = {
            column.name: ColumnData(
                type=column.type, values=[column.value(row) for row in self.attempts], places=places
            )
            for column in _COLUMNS
        }
        return {
            **own,
            "iteration": ColumnData(type=ColumnType.INTEGER, values=iterations),
            "time_ms": ColumnData(type=ColumnType.NUMBER, values=times_ms),
            "as_of": ColumnData(
                type=ColumnType.TIME, values=[self.as_of], places=array("i", [0]) * len(times_ms)
            ),
        }


def load_samples(client: FarmClient, matrix_id: MatrixId, cell_id: CellId | None) -> Samples:
    """Return the samples of a matrix, or of one of its cells."""
    as_of = datetime.now(UTC)
    attempts = [
        SampledAttempt(cell=cell, run=run, samples_ns=_unpacked(run))
        for cell in client.samples(matrix_id)
        if cell_id in (None, cell.cell_id)
        for run in cell.runs
    ]
    return Samples(attempts, as_of=as_of)


def _unpacked(run: SampledRun) -> "array[int]":
    return array("q", decode_samples(b64decode(run.samples)) if run.samples else ())


def _of_cell(column: FrameColumn[SampledCell]) -> FrameColumn[SampledAttempt]:
    return FrameColumn(name=column.name, type=column.type, value=_through(column.value))


def _through(value: Callable[[SampledCell], object]) -> Callable[[SampledAttempt], object]:
    return lambda attempt: value(attempt.cell)


_CELL_COLUMNS: tuple[FrameColumn[SampledCell], ...] = (
    integer("matrix_id"),
    integer("cell_id"),
    *device_columns(),
    text("label"),
    *setup_columns(lambda cell: cell),
)
_COLUMNS: tuple[FrameColumn[SampledAttempt], ...] = (
    *map(_of_cell, _CELL_COLUMNS),
    integer("attempt_id", lambda attempt: attempt.run.attempt_id),
    integer("job_id", lambda attempt: attempt.run.job_id),
    integer("round", lambda attempt: attempt.run.round),
    text("quality", lambda attempt: attempt.run.quality),
    integer("n", lambda attempt: len(attempt.samples_ns)),
    integer("of", lambda attempt: attempt.run.sample_count),
    moment("measured_at", lambda attempt: attempt.run.measured_at),
)
