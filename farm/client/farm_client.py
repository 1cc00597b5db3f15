"""The farm over HTTP, for people and scripts: typed answers, and errors of our own tree."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

import httpx

from farm.client.programs import HarnessCalls
from farm.client.responses import checked_response
from farm.client.tokens import TokenCalls
from farm.client.upload import Progress, Upload
from farm.core.base.ids import AttemptId, CellId, Digest, JobId, MatrixId
from farm.core.errors import FarmError, InvalidInput
from farm.core.models.variant import Manifest
from farm.core.upkeep.device_action import DeviceActionKind
from farm.wire.documents.alarms import AlarmView, ClearRequest
from farm.wire.documents.devices import (
    AdbAccess,
    DeviceActionView,
    DeviceChange,
    DeviceDetail,
    DeviceView,
    OperatorRequest,
    RetirementPlan,
)
from farm.wire.documents.events import EventPage
from farm.wire.documents.files.storage import StorageView, SweepView
from farm.wire.documents.hosts import HostChange, HostDetail, HostRetirementPlan, HostView
from farm.wire.documents.matrices.matrices import (
    MAX_JOBS_PAGE,
    AttemptView,
    CellView,
    FarmView,
    JobView,
    MatrixSummary,
    MatrixView,
    RejectedCellView,
    SpeedupView,
    VariantRegistration,
    VariantView,
)
from farm.wire.documents.matrices.pending import JobPendingView, MatrixPendingView
from farm.wire.documents.matrices.plans import CancellationView, MatrixPlanView
from farm.wire.documents.results.explain import CellExplanation, JobDetail, JobExplanation
from farm.wire.documents.results.placements import SeriesPlacementView
from farm.wire.documents.results.results import ResultView

T = TypeVar("T")

_LOST_HINT = "it may have been submitted nevertheless: check `farm matrix list` before you submit it again"


class FarmClient(HarnessCalls, TokenCalls):
    """The calls of a farm's API; every call has a time-out.

    Every method raises `FarmUnreachable` when nothing answers, and otherwise the error of the tree whose
    `code` the farm's problem document bears.
    """

    def is_healthy(self) -> bool:
        """Tell whether a farm answers that it is healthy; never raises."""
        try:
            self._get(object, "/health")
        except FarmError:
            return False
        return True

    def farm(self) -> FarmView:
        return self._get(FarmView, "/farm")

    def devices(self) -> list[DeviceView]:
        return self._get(list[DeviceView], "/devices")

    def device(self, name: str) -> DeviceDetail:
        """Return one device by its id, its label, or the unique beginning of either."""
        return self._get(DeviceDetail, _device_path(name))

    def change_device(self, name: str, verb: str, request: OperatorRequest) -> DeviceChange:
        """Have an operator's verb done: `admit`, `label`, `reserve`, ..., as the routes name them."""
        return self._post(DeviceChange, f"{_device_path(name)}/{verb}", request.model_dump(mode="json"))

    def retirement(self, name: str) -> RetirementPlan:
        return self._get(RetirementPlan, f"{_device_path(name)}/retirement")

    def alarms(self, *, cleared: bool = False) -> list[AlarmView]:
        """Return the open alarms, the oldest first; with `cleared` the newest of all."""
        return self._get(list[AlarmView], "/alarms", cleared="true" if cleared else None)

    def clear_alarm(self, alarm_id: int, request: ClearRequest) -> AlarmView:
        return self._post(AlarmView, f"/alarms/{alarm_id}/clear", request.model_dump(mode="json"))

    def hosts(self) -> list[HostView]:
        return self._get(list[HostView], "/hosts")

    def host(self, name: str) -> HostDetail:
        return self._get(HostDetail, _host_path(name))

    def change_host(self, name: str, verb: str, request: OperatorRequest) -> HostChange:
        """Have an operator's verb done: `drain`, `activate`, `limit`, `retire`."""
        return self._post(HostChange, f"{_host_path(name)}/{verb}", request.model_dump(mode="json"))

    def host_retirement(self, name: str) -> HostRetirementPlan:
        return self._get(HostRetirementPlan, f"{_host_path(name)}/retirement")

    def adb_access(self, name: str, by: str) -> AdbAccess:
        return self._get(AdbAccess, f"{_device_path(name)}/adb", by=by)

    def request_device_action(
        self, name: str, kind: DeviceActionKind, request: OperatorRequest
    ) -> DeviceActionView:
        """Have something done on a phone when it is free."""
        return self._post(DeviceActionView, f"{_device_path(name)}/{kind}", request.model_dump(mode="json"))

    def device_action(self, device_action_id: int) -> DeviceActionView:
        return self._get(DeviceActionView, f"/device_actions/{device_action_id}")

    def variants(self) -> list[VariantView]:
        return self._get(list[VariantView], "/variants")

    def register_variant(self, manifest: Manifest) -> VariantView:
        """Make a file known whose bytes the farm has; the same manifest again changes nothing."""
        body = VariantRegistration(manifest=manifest).model_dump(mode="json")
        return self._post(VariantView, "/variants", body)

    def has_blob(self, digest: Digest) -> bool:
        """Tell whether the farm has the bytes of a digest."""
        response = self._send(self._http.build_request("HEAD", f"/blobs/{digest}"))
        missing = (httpx.codes.NOT_FOUND, httpx.codes.GONE)
        return response.status_code not in missing and bool(checked_response(response))

    def upload(self, path: Path, digest: Digest, *, progress: Progress | None = None) -> None:
        """Send a file, in pieces; bytes the farm already has cost one small request.

        What breaks off goes on where it ended; `progress` is told of each byte once.
        """
        Upload(http=self._http, send=self._send, path=path, digest=digest, progress=progress).run()

    def submit_matrix(self, spec: Mapping[str, object]) -> MatrixView:
        """Submit a matrix, once; `spec` is the matrix file as read."""
        return self._post_once(MatrixView, "/matrices", {"spec": spec}, lost_hint=_LOST_HINT)

    def plan_matrix(self, spec: Mapping[str, object]) -> MatrixPlanView:
        """Return what a matrix would expand to; nothing is queued."""
        return self._post(MatrixPlanView, "/matrices/plan", {"spec": spec})

    def cancel_matrix(self, matrix_id: MatrixId, *, device: str | None = None) -> CancellationView:
        """Cancel the unfinished jobs of a matrix, or of its part on one device."""
        return self._post(CancellationView, f"/matrices/{matrix_id}/cancel", {"device": device})

    def rerun_matrix(self, matrix_id: MatrixId, *, failed: bool) -> MatrixView:
        """Submit a matrix again, or only its cells without a valid measurement; once."""
        path = f"/matrices/{matrix_id}/rerun"
        return self._post_once(MatrixView, path, {"failed": failed}, lost_hint=_LOST_HINT)

    def matrices(self) -> list[MatrixSummary]:
        return self._get(list[MatrixSummary], "/matrices")

    def matrix(self, matrix_id: MatrixId) -> MatrixView:
        return self._get(MatrixView, f"/matrices/{matrix_id}")

    def results(self, matrix_id: MatrixId) -> Iterator[ResultView]:
        """Yield every cell of a matrix with its values over rounds, page by page."""
        after = -1
        while page := self._get(list[ResultView], f"/matrices/{matrix_id}/results", after=str(after)):
            yield from page
            after = page[-1].index

    def rejected(self, matrix_id: MatrixId) -> Iterator[RejectedCellView]:
        """Yield all cells of a matrix that get no jobs, page by page; `matrix` holds only the first."""
        after = -1
        while page := self._get(list[RejectedCellView], f"/matrices/{matrix_id}/rejected", after=str(after)):
            yield from page
            after = page[-1].index

    def cells(self, matrix_id: MatrixId) -> Iterator[CellView]:
        """Yield all cells of a matrix, page by page; `matrix` holds only the first of a large one."""
        after = -1
        while page := self._get(list[CellView], f"/matrices/{matrix_id}/cells", after=str(after)):
            yield from page
            after = page[-1].index

    def jobs(self, matrix_id: MatrixId) -> list[JobView]:
        """Return all jobs of a matrix, however many pages they take."""
        return [job for page in self.job_pages(matrix_id) for job in page]

    def job_pages(self, matrix_id: MatrixId, *, limit: int = MAX_JOBS_PAGE) -> Iterator[list[JobView]]:
        """Yield the jobs of a matrix in queue order, page by page."""
        after, page = 0, None
        while page is None or len(page) == limit:
            asked = {"matrix_id": str(matrix_id), "after": str(after), "limit": str(limit)}
            page = self._get(list[JobView], "/jobs", **asked)
            yield page
            after = page[-1].job_id if page else after

    def job(self, job_id: JobId) -> JobDetail:
        return self._get(JobDetail, f"/jobs/{job_id}")

    def explain_job(self, job_id: JobId) -> JobExplanation:
        """Return the evidence and conditions behind one measurement."""
        return self._get(JobExplanation, f"/jobs/{job_id}/explanation")

    def explain_cell(self, cell_id: CellId) -> CellExplanation:
        """Return the evidence behind a cell's comparison with its baseline."""
        return self._get(CellExplanation, f"/cells/{cell_id}/explanation")

    def job_waiting(self, job_id: JobId) -> JobPendingView:
        """Return the reasons why a job is pending."""
        return self._get(JobPendingView, f"/jobs/{job_id}/waiting")

    def matrix_waiting(self, matrix_id: MatrixId) -> MatrixPendingView:
        """Return the pending jobs of a matrix with their reasons."""
        return self._get(MatrixPendingView, f"/matrices/{matrix_id}/waiting")

    def attempt(self, attempt_id: AttemptId) -> AttemptView:
        return self._get(AttemptView, f"/attempts/{attempt_id}")

    def speedups(
        self,
        *,
        matrix_id: MatrixId | None = None,
        device: str | None = None,
        model: str | None = None,
        across_controls: bool = False,
    ) -> Iterator[SpeedupView]:
        """Yield every candidate against its baseline, filtered by matrix, device and model, page by page."""
        matrix = None if matrix_id is None else str(matrix_id)
        across = "true" if across_controls else None
        asked = {"matrix_id": matrix, "device": device, "model": model, "across_controls": across}
        told: CellId | None = None
        # A farm of an earlier release knows no pages: it tells the whole list each time.
        while (page := self._get(list[SpeedupView], "/speedups", **asked)) and page[-1].cell_id != told:
            yield from page
            told = page[-1].cell_id
            asked["after"] = str(told)

    def placements(
        self, *, matrix_id: MatrixId | None = None, device: str | None = None
    ) -> list[SeriesPlacementView]:
        """Return the hardware that each series ran on, filtered by matrix and device."""
        matrix = None if matrix_id is None else str(matrix_id)
        return self._get(list[SeriesPlacementView], "/placements", matrix_id=matrix, device=device)

    def events(
        self, asked: Mapping[str, object], *, after: int | None = None, wait_s: float = 0.0
    ) -> EventPage:
        """Return the newest events, or wait for those after one; `asked` holds the filters, None for all."""
        query = {**asked, "after": after, "wait_s": wait_s}
        told = {name: None if value is None else str(value) for name, value in query.items()}
        return self._get(EventPage, "/events", **told)

    def storage(self) -> StorageView:
        return self._get(StorageView, "/storage")

    def sweep_storage(self) -> SweepView:
        """Enforce the storage limits now."""
        return self._post(SweepView, "/storage/sweep", {})


def _device_path(name: str) -> str:
    if not name:
        raise InvalidInput("the name of a phone is empty", hint="`farm device list` lists them")
    return f"/devices/{quote(name, safe='')}"


def _host_path(name: str) -> str:
    if not name:
        raise InvalidInput("the name of a host is empty", hint="`farm host list` lists them")
    return f"/hosts/{quote(name, safe='')}"
