"""The farm over HTTP, for people and scripts: typed answers, and errors of our own tree."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from urllib.parse import quote

import httpx

from farm.client.access_queries import AccessQueries
from farm.client.connection import QueryValue
from farm.client.export_queries import ExportQueries
from farm.client.import_queries import ImportQueries
from farm.client.responses import checked_response
from farm.client.result_queries import ResultQueries, time_text
from farm.client.upload import Progress, Upload
from farm.client.variant_queries import VariantQueries
from farm.core.base.ids import AttemptId, CellId, DeviceId, Digest, JobId, MatrixId, digest_of
from farm.core.errors import DigestMismatch, FarmError, InvalidInput
from farm.core.operations.alarm import Alarm
from farm.core.upkeep.device_action import DeviceActionKind
from farm.wire.base import MAX_SELECTORS
from farm.wire.documents.devices import (
    AdbAccess,
    DeviceActionView,
    DeviceChange,
    DeviceDetail,
    DeviceView,
    OperatorRequest,
    RetirementPlan,
    UsageView,
)
from farm.wire.documents.files.programs import (
    AdapterView,
    HarnessView,
    ProgramRegistration,
    ProgramView,
    RegisteredProgramView,
)
from farm.wire.documents.files.storage import FileRemoval, StorageView, StoredFilesView, SweepResult
from farm.wire.documents.hosts import HostChange, HostDetail, HostRetirementPlan, HostView
from farm.wire.documents.matrices.jobs import MAX_JOBS_PAGE, AttemptView, JobView
from farm.wire.documents.matrices.matrices import (
    MAX_MATRICES_PAGE,
    CellView,
    MatrixSummary,
    MatrixView,
    Rejection,
)
from farm.wire.documents.matrices.pending import JobPendingView, MatrixPendingView
from farm.wire.documents.matrices.plans import CancellationView, MatrixPlanView
from farm.wire.documents.matrices.standing import StandingSummary, StandingView
from farm.wire.documents.operations import AlarmView, ClearRequest, EventPage, FarmView
from farm.wire.documents.results.explain import CellExplanation, JobDetail, JobExplanation
from farm.wire.documents.results.rerun import RerunPlan
from farm.wire.documents.results.results import (
    EnergyImport,
    PlacedSeries,
    ReparsePage,
    ReparseRequest,
    ResultView,
)

_LOST_HINT = "it may have been submitted nevertheless: check `farm matrix list` before you submit it again"


class FarmClient(ResultQueries, ExportQueries, ImportQueries, VariantQueries, AccessQueries):
    """The calls of a farm's API; every call has a time-out.

    Every method raises `FarmUnreachable` when nothing answers, and otherwise the error of the tree whose
    `code` the farm's problem document bears.
    """

    def is_healthy(self) -> bool:
        """Return whether a farm answers that it is healthy; never raises."""
        try:
            self._get(object, "/health")
        except FarmError:
            return False
        return True

    def farm(self) -> FarmView:
        return self._get(FarmView, "/farm")

    def devices(self) -> list[DeviceView]:
        return self._list(list[DeviceView], "/devices", lambda view: view.device_id)

    def select_devices(self, selectors: Sequence[str]) -> list[DeviceId]:
        """Return the devices that fit any of the selectors, like `soc:SM8*`."""
        found: list[DeviceId] = []
        for start in range(0, len(selectors), MAX_SELECTORS):
            some = selectors[start : start + MAX_SELECTORS]
            found += self._get(list[DeviceId], "/device_selection", selector=some)
        return found

    def device(self, name: str) -> DeviceDetail:
        """Return one device by its id, its label, or the unique beginning of either."""
        return self._get(DeviceDetail, _device_path(name))

    def device_usage(self, week: str | None = None) -> UsageView:
        """Return for what the time of the devices went in a week, by default this one."""
        return self._get(UsageView, "/device_usage", week=week)

    def change_device(self, name: str, verb: str, request: OperatorRequest) -> DeviceChange:
        """Call an operator's verb: `admit`, `label`, `reserve`, ..., as the routes name them."""
        return self._post(DeviceChange, f"{_device_path(name)}/{verb}", request.model_dump(mode="json"))

    def retirement(self, name: str) -> RetirementPlan:
        return self._get(RetirementPlan, f"{_device_path(name)}/retirement")

    def alarms(
        self, *, cleared: bool = False, since: datetime | None = None, limit: int | None = None
    ) -> list[AlarmView]:
        """Return the open alarms, the oldest first; with `cleared` the newest of all."""
        return self._get(
            list[AlarmView], "/alarms", cleared=cleared or None, since=time_text(since), limit=limit
        )

    def clear_alarm(self, alarm_id: int, request: ClearRequest) -> Alarm:
        return self._post(Alarm, f"/alarms/{alarm_id}/clear", request.model_dump(mode="json"))

    def hosts(self) -> list[HostView]:
        return self._list(list[HostView], "/hosts", lambda view: view.host_id)

    def host(self, name: str) -> HostDetail:
        return self._get(HostDetail, _host_path(name))

    def change_host(self, name: str, verb: str, request: OperatorRequest) -> HostChange:
        """Call an operator's verb: `drain`, `activate`, `limit`, `retire`."""
        return self._post(HostChange, f"{_host_path(name)}/{verb}", request.model_dump(mode="json"))

    def host_retirement(self, name: str) -> HostRetirementPlan:
        return self._get(HostRetirementPlan, f"{_host_path(name)}/retirement")

    def adb_access(self, name: str, by: str) -> AdbAccess:
        return self._get(AdbAccess, f"{_device_path(name)}/adb", by=by)

    def request_device_action(
        self, name: str, kind: DeviceActionKind, request: OperatorRequest
    ) -> DeviceActionView:
        """Request an action on a phone, which runs when the phone is free."""
        return self._post(DeviceActionView, f"{_device_path(name)}/{kind}", request.model_dump(mode="json"))

    def device_action(self, device_action_id: int) -> DeviceActionView:
        return self._get(DeviceActionView, f"/device_actions/{device_action_id}")

    def has_blob(self, digest: Digest) -> bool:
        """Return whether the farm has the bytes of a digest."""
        response = self._send(self._http.build_request("HEAD", f"/blobs/{digest}"))
        missing = (httpx.codes.NOT_FOUND, httpx.codes.GONE)
        return response.status_code not in missing and bool(checked_response(response))

    def upload(self, path: Path, digest: Digest, *, progress: Progress | None = None) -> None:
        """Send a file, in pieces; bytes the farm already has cost one small request.

        What breaks off goes on where it ended; `progress` is told of each byte once.
        """
        Upload(http=self._http, send=self._send, path=path, digest=digest, progress=progress).run()

    def download(self, digest: Digest) -> bytes:
        """Return the bytes of a small file.

        Raises:
            NotFound: the farm never had it.
            ArtifactExpired: the farm has it no more.
            DigestMismatch: other bytes came.
        """
        content = checked_response(self._send(self._http.build_request("GET", f"/blobs/{digest}"))).content
        if digest_of(content) != digest:
            raise DigestMismatch(f"what the farm sent is not {digest[:12]}")
        return content

    def submit_matrix(self, spec: Mapping[str, object], *, key: str | None = None) -> MatrixView:
        """Submit a matrix, once; `spec` is the matrix file as read.

        With a key of its own, the same matrix that was submitted with it before is returned.
        """
        return self._post_once(MatrixView, "/matrices", {"spec": spec}, lost_hint=_LOST_HINT, key=key)

    def plan_matrix(self, spec: Mapping[str, object]) -> MatrixPlanView:
        """Return what a matrix would expand to; nothing is queued."""
        return self._post(MatrixPlanView, "/matrices/plan", {"spec": spec})

    def cancel_matrix(self, matrix_id: MatrixId, *, device: str | None = None) -> CancellationView:
        """Cancel the unfinished jobs of a matrix, or of its part on one device; return when it is done."""
        while True:
            view = self._post(CancellationView, f"/matrices/{matrix_id}/cancel", {"device": device})
            if view.is_done:
                return view

    def rerun_matrix(self, matrix_id: MatrixId, *, failed: bool, key: str | None = None) -> MatrixView:
        """Submit a matrix again, or only its cells without a valid measurement; once, as `submit_matrix`."""
        path = f"/matrices/{matrix_id}/rerun"
        return self._post_once(MatrixView, path, {"failed": failed}, lost_hint=_LOST_HINT, key=key)

    def plan_rerun(self, attempt_id: AttemptId) -> RerunPlan:
        """Return how the number of an attempt would be measured again; nothing is queued."""
        return self._get(RerunPlan, f"/attempts/{attempt_id}/rerun")

    def rerun_attempt(self, attempt_id: AttemptId, *, key: str | None = None) -> MatrixView:
        """Measure the number of an attempt again; once, as `submit_matrix`."""
        path = f"/attempts/{attempt_id}/rerun"
        return self._post_once(MatrixView, path, {}, lost_hint=_LOST_HINT, key=key)

    def stand_matrix(self, spec: Mapping[str, object]) -> StandingView:
        """Let a matrix stand, or replace the one of its name; `spec` is the matrix file as read."""
        return self._post(StandingView, "/standing-matrices", {"spec": spec})

    def standing_matrices(self) -> list[StandingSummary]:
        """Return the matrices that stand, by name."""
        return self._get(list[StandingSummary], "/standing-matrices")

    def standing_matrix(self, standing_id: int) -> StandingView:
        """Return a standing matrix with its coverage."""
        return self._get(StandingView, f"/standing-matrices/{standing_id}")

    def end_standing_matrix(self, standing_id: int) -> StandingSummary:
        """End a standing matrix; its matrices that are under way go on."""
        return self._post(StandingSummary, f"/standing-matrices/{standing_id}/end", {})

    def matrices(
        self,
        *,
        since: datetime | None = None,
        name: str | None = None,
        mine: bool = False,
        limit: int | None = None,
    ) -> Iterator[MatrixSummary]:
        """Yield the matrices since a time, of a name or of the caller, newest first, up to `limit`."""
        return self._pages(
            list[MatrixSummary],
            "/matrices",
            lambda matrix: matrix.matrix_id,
            newest_first=True,
            limit=limit,
            max_page=MAX_MATRICES_PAGE,
            since=time_text(since),
            name=name,
            mine=mine or None,
        )

    def matrix(self, matrix_id: MatrixId) -> MatrixView:
        return self._get(MatrixView, f"/matrices/{matrix_id}")

    def matrix_report(self, matrix_id: MatrixId) -> str:
        """Return a matrix with its comparisons as one HTML file."""
        return self._get_text(f"{self.url}/reports/matrices/{matrix_id}")

    def results(self, matrix_id: MatrixId) -> Iterator[ResultView]:
        """Yield every cell of a matrix with its values over rounds, page by page."""
        return self._pages(
            list[ResultView], f"/matrices/{matrix_id}/results", lambda view: view.index, after=-1
        )

    def rejected(self, matrix_id: MatrixId) -> Iterator[Rejection]:
        """Yield all cells of a matrix that get no jobs, page by page; `matrix` holds only the first."""
        return self._pages(
            list[Rejection], f"/matrices/{matrix_id}/rejected", lambda view: view.index, after=-1
        )

    def cells(self, matrix_id: MatrixId) -> Iterator[CellView]:
        """Yield all cells of a matrix, page by page; `matrix` holds only the first of a large one."""
        return self._pages(list[CellView], f"/matrices/{matrix_id}/cells", lambda view: view.index, after=-1)

    def jobs(self, matrix_id: MatrixId) -> list[JobView]:
        """Return all jobs of a matrix, however many pages they take."""
        return [job for page in self.job_pages(matrix_id) for job in page]

    def job_pages(self, matrix_id: MatrixId, *, limit: int = MAX_JOBS_PAGE) -> Iterator[list[JobView]]:
        """Yield the jobs of a matrix in queue order, page by page."""
        after, page = 0, None
        while page is None or len(page) == limit:
            page = self._get(list[JobView], "/jobs", matrix_id=matrix_id, after=after, limit=limit)
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

    def import_energy(self, attempt_id: AttemptId, imported: EnergyImport) -> AttemptView:
        return self._post(AttemptView, f"/attempts/{attempt_id}/energy", imported.model_dump(mode="json"))

    def placements(
        self, *, matrix_id: MatrixId | None = None, device: str | None = None
    ) -> list[PlacedSeries]:
        """Return the hardware that each series ran on, filtered by matrix and device."""
        return self._get(list[PlacedSeries], "/placements", matrix_id=matrix_id, device=device)

    def events(
        self, filters: Mapping[str, QueryValue], *, after: int | None = None, wait_s: float = 0.0
    ) -> EventPage:
        """Return the newest events, or wait for those after one; a filter is None for all."""
        return self._get(EventPage, "/events", **filters, after=after, wait_s=wait_s)

    def storage(self) -> StorageView:
        return self._get(StorageView, "/storage")

    def sweep_storage(self) -> SweepResult:
        """Enforce the storage limits now."""
        return self._post(SweepResult, "/storage/sweep", {})

    def stored_files(self, person: str | None = None) -> StoredFilesView:
        """Return the files that the caller, or a person, uploaded: the largest thousand, and all bytes."""
        return self._get(StoredFilesView, "/storage/files", person=person)

    def remove_stored_file(self, digest: Digest) -> FileRemoval:
        """Remove a file that the caller uploaded; an admin may remove anyone's."""
        return self._delete(FileRemoval, f"/storage/files/{digest}")

    def programs(self) -> list[ProgramView]:
        return self._get(list[ProgramView], "/harnesses")

    def adapters(self) -> list[AdapterView]:
        return self._get(list[AdapterView], "/adapters")

    def harness(self, name: str) -> HarnessView:
        return self._get(HarnessView, _path("/harnesses", name, "a harness", "`farm harness list` has them"))

    def register_program(self, registration: ProgramRegistration) -> RegisteredProgramView:
        """Register a program that new matrices run from then on; its files were uploaded before."""
        return self._post(RegisteredProgramView, "/harnesses", registration.model_dump(mode="json"))

    def reparse(self, request: ReparseRequest) -> ReparsePage:
        """Parse the next page of stored output with the present adapters."""
        return self._post(ReparsePage, "/reparse", request.model_dump(mode="json"))


def _device_path(name: str) -> str:
    return _path("/devices", name, "a phone", "`farm device list` lists them")


def _host_path(name: str) -> str:
    return _path("/hosts", name, "a host", "`farm host list` lists them")


def _path(parent: str, name: str, noun: str, hint: str) -> str:
    if not name:
        raise InvalidInput(f"the name of {noun} is empty", hint=hint)
    return f"{parent}/{quote(name, safe='')}"
