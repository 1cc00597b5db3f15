"""The tools of `farm mcp`: those that look for every caller, those that change something for submitters."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp.types import ToolAnnotations
from pydantic import Field

from farm import __version__
from farm.cli.farm.mcp_answers import LISTED, Answer, document, page
from farm.cli.farm.mcp_tool import FarmTool
from farm.client.farm_client import FarmClient
from farm.core.base.ids import AttemptId, CellId, MatrixId
from farm.core.errors import Forbidden, InvalidInput
from farm.core.operations.role import Role, is_permitted
from farm.presentation.text import past_moment
from farm.wire.documents.matrices.matrices import MatrixView
from farm.wire.documents.matrices.matrix import read_matrix
from farm.wire.documents.matrices.standing import plannable_spec
from farm.wire.documents.results.history import SeriesHistory

#: Rows of an answer, and points of a series, unless more are asked for.
_ROWS, _MAX_ROWS = 50, 500
_POINTS, _MAX_POINTS = 20, 50
_INSTRUCTIONS = (
    "A farm that benchmarks ML models on phones. Times are nanoseconds; a speedup is baseline time over "
    "candidate time, above 1 the candidate is faster. Name a number with its interval, its verdict and its "
    "device, and say when a device is virtual. A matrix is a set of cells (a model file, a backend and flags "
    "on a device), each measured in several rounds. Fields without a value are left out. A list that goes on "
    "has `next_skip`: call the tool again with it as `skip`. A list inside of a document has "
    f"{LISTED} entries at most: NAME_left_out counts the others. Hints name commands of a terminal: use the "
    "tool that does the same. Where an access token is refused, the person logs in again in a terminal "
    "(`farm login`), and the next call works. Plan a matrix before you submit it, and ask the person before "
    "you submit or rerun one."
)
_EXAMPLE = (
    "{name: first, harness: speed_benchmark_torch, axes: {model: mobilenet_v2, "
    "precision: [float32, int8-core], format: lite, backend: cpu}, settings: {iter: 30}, "
    "devices: [{soc: 'Tensor*'}], rounds: 5, baseline: {precision: float32}}"
)
_DEVICE_FIELDS = {
    *("device_id", "label", "tags", "device_model", "soc", "android", "abi", "virtual"),
    *("presence", "health", "admin", "job_id", "waiting_for", "advice"),
}
_LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

Limit = Annotated[int, Field(ge=1, le=_MAX_ROWS, description="Rows at most; fewer where they are long.")]
Skip = Annotated[int, Field(ge=0, description="Rows to leave out: `next_skip` of the answer before.")]
Points = Annotated[
    int, Field(ge=1, le=_MAX_POINTS, description="Sessions of each series at most, the newest.")
]
Past = Annotated[str | None, Field(description="A date or a span: 2026-03-01, 12h, 30d.")]
Name = Annotated[str | None, Field(description="Only those with this text in their name.")]
Mine = Annotated[bool, Field(description="Only those that the caller submitted.")]
Device = Annotated[str | None, Field(description="Only this device: an id or a label of list_devices.")]
Model = Annotated[str | None, Field(description="Only this network, such as mobilenet_v2.")]
Matrix = Annotated[int, Field(ge=1, lt=2**53, description="A matrix_id of list_matrices.")]
Cell = Annotated[int, Field(ge=1, lt=2**53, description="A cell_id of speedups or show_matrix.")]
Attempt = Annotated[
    int, Field(ge=1, lt=2**53, description="An attempt_id, of explain_cell or of a problem in show_matrix.")
]
FailedOnly = Annotated[
    bool,
    Field(description="Only cells without a valid number, and those they are compared with; false: all."),
]
MatrixText = Annotated[
    str,
    Field(
        description="The matrix as YAML. Every combination of the axes is a cell; an axis is model, "
        "precision, format, backend or a flag of the harness (show_harness); model, precision and format are "
        "those of list_variants. baseline says what cells are compared with. devices: all, or selectors. "
        f"{_EXAMPLE}"
    ),
]


class FarmTools:
    """What an assistant can ask of a farm, as one caller. Every method is a tool of its name."""

    def __init__(self, farm: FarmClient) -> None:
        self._farm = farm

    def list_devices(
        self,
        selector: Annotated[
            str | None, Field(description="Only devices that fit, such as soc:SM8*, android:14 or a name.")
        ] = None,
        limit: Limit = _ROWS,
        skip: Skip = 0,
    ) -> Answer:
        """List the devices: model, chip, Android, state, and why one gets no work."""
        selected = None if selector is None else set(self._farm.select_devices([selector]))
        views = (view for view in self._farm.devices() if selected is None or view.device_id in selected)
        rows = (view.model_dump(mode="json", include=_DEVICE_FIELDS) for view in views)
        return page("devices", rows, limit, skip)

    def list_variants(self, name: Name = None, limit: Limit = _ROWS, skip: Skip = 0) -> Answer:
        """List the model files of the farm, newest first, or those with a text in their name."""
        return page("variants", self._farm.newest_variants(name=name, every=True), limit, skip)

    def show_harness(
        self, name: Annotated[str, Field(description="Such as benchmark_model; a wrong one lists them.")]
    ) -> Answer:
        """Show a harness, which runs models on a device: its backends, flags with defaults, and programs."""
        return document(self._farm.harness(name))

    def list_matrices(
        self,
        name: Name = None,
        since: Past = None,
        mine: Mine = False,
        limit: Limit = _ROWS,
        skip: Skip = 0,
    ) -> Answer:
        """List matrices, newest first: state, progress, and who submitted them."""
        found = self._farm.matrices(since=_past(since), name=name, mine=mine)
        return page("matrices", found, limit, skip)

    def show_matrix(self, matrix_id: Matrix, limit: Limit = _ROWS, skip: Skip = 0) -> Answer:
        """Show a matrix: its progress on each device, what is not run, and its cells with their outcomes."""
        view = self._farm.matrix(MatrixId(matrix_id))
        cells = page("cell_list", self._farm.cells(view.matrix_id), limit, skip)
        return document(view.model_copy(update={"cell_list": ()})) | cells

    def why_waiting(self, matrix_id: Matrix) -> Answer:
        """Show what the pending jobs of a matrix wait for, and what helps."""
        return document(self._farm.matrix_waiting(MatrixId(matrix_id)))

    def speedups(
        self,
        matrix_id: Matrix | None = None,
        device: Device = None,
        model: Model = None,
        baseline: Annotated[
            str | None,
            Field(description="Compare with the cell with these words in its label, planned or not."),
        ] = None,
        candidate: Annotated[
            str | None,
            Field(description="Only candidates with these words in their label, such as int8-core."),
        ] = None,
        since: Past = None,
        limit: Limit = _ROWS,
        skip: Skip = 0,
    ) -> Answer:
        """Compare candidates with their baselines: of a matrix, or the newest of each pair.

        Each row has the speedup with its 95 % interval, the verdict and its reason, and both times.
        """
        found = self._farm.speedups(
            matrix_id=None if matrix_id is None else MatrixId(matrix_id),
            device=device,
            model=model,
            baseline=baseline,
            candidate=candidate,
            since=_past(since),
        )
        return page("speedups", found, limit, skip)

    def history(
        self,
        device: Device = None,
        model: Model = None,
        harness: Annotated[str | None, Field(description="Only this harness.")] = None,
        variant: Annotated[
            str | None, Field(description="Only variants with this text in their name.")
        ] = None,
        since: Past = None,
        limit: Limit = _ROWS,
        skip: Skip = 0,
        points: Points = _POINTS,
    ) -> Answer:
        """Show how times and speedups of series went over sessions, with what had another version.

        Each series has its newest points; `points_left_out` counts older ones.
        """
        found = self._farm.history(
            device=device, model=model, harness=harness, variant=variant, since=_past(since)
        )
        rows = (_newest_points(view, points) for view in found)
        return page("series", rows, limit, skip)

    def regressions(
        self,
        since: Past = None,
        device: Device = None,
        model: Model = None,
        every: Annotated[bool, Field(description="Improvements, too.")] = False,
        limit: Limit = _ROWS,
        skip: Skip = 0,
    ) -> Answer:
        """List what became slower, since when and because of what."""
        found = self._farm.changes(since=_past(since), device=device, model=model, every=every)
        return page("changes", found, limit, skip)

    def explain_cell(self, cell_id: Cell) -> Answer:
        """Show everything that a comparison rests on: rounds, what is left out, files, device, conditions."""
        return document(self._farm.explain_cell(CellId(cell_id)))

    def show_attempt(self, attempt_id: Attempt) -> Answer:
        """Show one run on a device: command, outcome, quality, times, and the ends of what it printed."""
        view = self._farm.attempt(AttemptId(attempt_id))
        return document(view.model_copy(update={"trace": None}))

    def plan_matrix(self, matrix: MatrixText) -> Answer:
        """Show what a matrix would expand to: cells, jobs, devices and what cannot run. Queues nothing.

        A matrix with `schedule` or `skip` is one that a person lets stand (`farm matrix stand`).
        """
        return document(self._farm.plan_matrix(read_matrix(matrix, check=plannable_spec)))

    def submit_matrix(
        self,
        matrix: MatrixText,
        jobs: Annotated[int, Field(description="The number of jobs that plan_matrix has said.")],
    ) -> Answer:
        """Submit a matrix after its plan: the devices measure it. Refused if the plan has changed."""
        spec = read_matrix(matrix)
        planned = self._farm.plan_matrix(spec).jobs
        if planned != jobs:
            hint = "call plan_matrix, and show the person what it says"
            raise InvalidInput(f"the plan has {planned} jobs, not {jobs}", hint=hint)
        return document(self._farm.submit_matrix(spec))

    def cancel_matrix(self, matrix_id: Matrix) -> Answer:
        """Cancel the unfinished jobs of a matrix of the caller; what is measured stays."""
        self._own(matrix_id)
        return document(self._farm.cancel_matrix(MatrixId(matrix_id)))

    def rerun_matrix(self, matrix_id: Matrix, failed: FailedOnly = True) -> Answer:
        """Submit a matrix of the caller again, as a new one."""
        self._own(matrix_id)
        return document(self._farm.rerun_matrix(MatrixId(matrix_id), failed=failed))

    def _own(self, matrix_id: Matrix) -> MatrixView:
        """Return a matrix of the caller.

        Raises:
            Forbidden: someone else submitted it.
        """
        view = self._farm.matrix(MatrixId(matrix_id))
        # A login of someone else may have changed the caller since the tools were listed.
        caller = self._farm.caller().name
        if view.submitted_by != caller:
            owner = view.submitted_by or "an unknown person"
            raise Forbidden(
                f"matrix {matrix_id} is of {owner}, not of {caller}",
                hint="a person can do that: `farm matrix cancel` and `farm matrix rerun`",
            )
        return view


def farm_server(farm: FarmClient) -> MCPServer[Any]:
    """Return a server with the tools that the role of the caller permits."""
    tools = FarmTools(farm)
    looks: tuple[Callable[..., Answer], ...] = (
        *(tools.list_devices, tools.list_variants, tools.show_harness, tools.list_matrices),
        *(tools.show_matrix, tools.why_waiting, tools.show_attempt, tools.explain_cell),
        *(tools.speedups, tools.history, tools.regressions, tools.plan_matrix),
    )
    changes: tuple[Callable[..., Answer], ...] = (
        *(tools.submit_matrix, tools.cancel_matrix, tools.rerun_matrix),
    )
    permitted = [FarmTool.of(look, _LOOKS) for look in looks]
    if is_permitted(farm.caller().role, Role.SUBMITTER):
        permitted += [FarmTool.of(change, _CHANGES) for change in changes]
    return MCPServer(
        "benchfarm", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING", tools=permitted
    )


def _past(text: str | None) -> datetime | None:
    return past_moment(text, option="since")


def _newest_points(view: SeriesHistory, most: int) -> Answer:
    newest = view.model_copy(update={"points": view.points[-most:]})
    return document(newest) | {"points_left_out": len(view.points) - len(newest.points)}
