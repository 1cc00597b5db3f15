"""A matrix at the farm, as an object: wait for it, cancel it, measure it again, ask for its numbers."""

from datetime import datetime
from html import escape
from typing import TYPE_CHECKING

from benchfarm.calls import checked_calls
from benchfarm.frames.frame import Frame
from benchfarm.frames.samples import Samples
from benchfarm.frames.speedup_frame import SpeedupFrame
from benchfarm.progress import progress_html, wait_with_progress
from farm.client.farm_client import FarmClient
from farm.core.base.ids import AttemptId, CellId, MatrixId
from farm.wire.documents.matrices.jobs import AttemptView, JobView
from farm.wire.documents.matrices.matrices import CellView, MatrixView, Rejection
from farm.wire.documents.matrices.pending import MatrixPendingView
from farm.wire.documents.matrices.plans import CancellationView
from farm.wire.documents.results.explain import CellExplanation
from farm.wire.documents.results.results import ResultView

if TYPE_CHECKING:
    from benchfarm.farm import Farm


@checked_calls
class Run:
    """One matrix. Its state is that of the last answer of the farm.

    `refresh()`, `wait()` and `cancel()` update it.
    """

    def __init__(self, farm: "Farm", view: MatrixView) -> None:
        self._farm = farm
        self.view = view

    @property
    def _client(self) -> FarmClient:
        return self._farm.client

    @property
    def id(self) -> MatrixId:
        """Return the number of the matrix, as `farm matrix list` shows it."""
        return self.view.matrix_id

    @property
    def name(self) -> str:
        """Return the name of the matrix."""
        return self.view.name

    @property
    def state(self) -> str:
        """Return the state of the matrix as of the last answer."""
        return self.view.state

    @property
    def is_finished(self) -> bool:
        """Return whether all jobs had ended as of the last answer."""
        return self.view.finished_at is not None

    @property
    def url(self) -> str:
        """Return the address of its page."""
        return f"{self._client.url}/matrices/{self.id}"

    def refresh(self) -> "Run":
        """Ask the farm for its state."""
        self.view = self._client.matrix(self.id)
        return self

    def wait(self, *, timeout_s: float | None = None, progress: bool = True) -> "Run":
        """Wait until all jobs have ended, and show the progress. Ctrl-C detaches; the matrix goes on.

        Args:
            timeout_s: the longest wait, in seconds; None for no limit.
            progress: show a bar for each device, in a terminal or a notebook.

        Raises:
            TimeoutError: the matrix has not finished by then; it goes on.
            KeyboardInterrupt: the wait was interrupted; a message says how to go on.
        """
        self.view = wait_with_progress(self._client, self.view, timeout_s=timeout_s, shows=progress)
        return self

    def cancel(self, *, device: str | None = None) -> CancellationView:
        """Cancel the unfinished jobs, or those on one device."""
        view = self._client.cancel_matrix(self.id, device=device)
        self.refresh()
        return view

    def rerun(self, *, failed: bool = False, key: str | None = None) -> "Run":
        """Submit the matrix again.

        Args:
            failed: only cells without a valid or noisy measurement in some round, and the cells they are
                compared with.
            key: makes the call idempotent: the same key returns the matrix of the first call.
        """
        return Run(self._farm, self._client.rerun_matrix(self.id, failed=failed, key=key))

    def rerun_attempt(self, attempt_id: int, *, key: str | None = None) -> "Run":
        """Measure the number of an attempt again, as it was made: of this matrix, or of another.

        Args:
            attempt_id: the number of the attempt, unique in the farm.
            key: makes the call idempotent: the same key returns the matrix of the first call.
        """
        return Run(self._farm, self._client.rerun_attempt(AttemptId(attempt_id), key=key))

    def cells(self) -> list[CellView]:
        """Return all cells with the outcomes of their jobs."""
        return list(self._client.cells(self.id))

    def jobs(self) -> list[JobView]:
        """Return all jobs with their attempts, those that failed, too."""
        return self._client.jobs(self.id)

    def rejected(self) -> list[Rejection]:
        """Return the cells that get no jobs, with the reasons."""
        return list(self._client.rejected(self.id))

    def why(self) -> MatrixPendingView:
        """Return why its queued jobs are not running."""
        return self._client.matrix_waiting(self.id)

    def explain(self, cell: int | CellView | ResultView) -> CellExplanation:
        """Return everything that the comparison of a cell rests on; the cell may be of another matrix."""
        return self._farm.explain(cell if isinstance(cell, int) else cell.cell_id)

    def attempt(self, attempt_id: int) -> AttemptView:
        """Return one run on a device: its plan, evidence and reading; it may be of another matrix."""
        return self._client.attempt(AttemptId(attempt_id))

    def speedups(
        self,
        *,
        device: str | None = None,
        model: str | None = None,
        baseline: str | None = None,
        candidate: str | None = None,
        across_controls: bool = False,
        at: datetime | None = None,
    ) -> SpeedupFrame:
        """Return every candidate against its baseline, as of now or `at`."""
        return self._farm.speedups(
            matrix=self.id,
            device=device,
            model=model,
            baseline=baseline,
            candidate=candidate,
            across_controls=across_controls,
            at=at,
        )

    def results(self) -> Frame[ResultView]:
        """Return every cell over its rounds."""
        return self._farm.results(self.id)

    def samples(self, *, cell: int | None = None) -> Samples:
        """Return every iteration of all accepted measurements, of any quality, or of those of one cell."""
        return self._farm.samples(self.id, cell=None if cell is None else CellId(cell))

    def report(self) -> str:
        """Return the matrix with its comparisons as one HTML file."""
        return self._client.matrix_report(self.id)

    def _repr_html_(self) -> str:
        """Return its progress, with a link to its page."""
        link = f'<a href="{escape(self.url)}" style="color: inherit">Run {self.id} ({escape(self.name)})</a>'
        return f"<div>{link}</div>{progress_html(self.view)}"

    def __repr__(self) -> str:
        done = sum(device.finished for device in self.view.progress)
        return f"<Run {self.id} ({self.name}): {self.state}, {done} of {self.view.jobs} jobs, {self.url}>"
