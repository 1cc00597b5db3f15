"""The tools of `farm mcp`: those that look for every caller, those that change something for submitters."""

import functools
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, ParamSpec

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field
from pydantic_core import to_jsonable_python

from farm import __version__
from farm.client.farm_client import FarmClient
from farm.core.base.ids import AttemptId, CellId, MatrixId
from farm.core.errors import FarmError, Forbidden, InvalidInput
from farm.core.operations.role import Role, is_permitted
from farm.presentation.text import past_moment
from farm.wire.documents.access import CallerView
from farm.wire.documents.matrices.matrices import MatrixView
from farm.wire.documents.matrices.matrix import read_matrix
from farm.wire.documents.results.history import SeriesHistory

P = ParamSpec("P")
Answer = dict[str, Any]

#: Rows of an answer, and points of a series, unless more are asked for: an assistant reads all of them.
_ROWS, _MAX_ROWS = 50, 500
_POINTS, _MAX_POINTS = 20, 200
_STREAM_CHARACTERS = 4000
_INSTRUCTIONS = (
    "A farm that benchmarks ML models on phones. Times are nanoseconds; a speedup is baseline time over "
    "candidate time, above 1 the candidate is faster. Name a number with its interval, its verdict and its "
    "device, and say when a device is virtual. A list that goes on has `next_skip`: call the tool again with "
    "it as `skip`. Plan a matrix before you submit it, and ask the person before you submit."
)
_DEVICE_FIELDS = {
    *("device_id", "label", "tags", "device_model", "soc", "android", "abi", "virtual"),
    *("presence", "health", "admin", "job_id", "waiting_for", "advice"),
}
_LOOKS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_CHANGES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

Limit = Annotated[int, Field(ge=1, le=_MAX_ROWS, description="Rows at most.")]
Skip = Annotated[int, Field(ge=0, description="Rows to leave out: `next_skip` of the answer before.")]
Points = Annotated[int, Field(ge=1, le=_MAX_POINTS, description="Sessions of each series at most.")]
Past = Annotated[str | None, Field(description="A date or a span: 2026-03-01, 12h, 30d.")]
MatrixText = Annotated[str, Field(description="The matrix as YAML, as in docs/matrix.md.")]


class FarmTools:
    """What an assistant can ask of a farm, as one caller. Every method is a tool of its name."""

    def __init__(self, farm: FarmClient, caller: CallerView) -> None:
        self._farm = farm
        self._caller = caller

    def list_devices(
        self,
        selector: Annotated[
            str | None, Field(description="Only devices that fit, like soc:SM8*, android:14 or a name.")
        ] = None,
        limit: Limit = _ROWS,
        skip: Skip = 0,
    ) -> Answer:
        """List the devices: model, chip, Android, state, and why one gets no work."""
        selected = None if selector is None else set(self._farm.select_devices([selector]))
        views = (view for view in self._farm.devices() if selected is None or view.device_id in selected)
        rows = (view.model_dump(mode="json", include=_DEVICE_FIELDS) for view in views)
        return _rows("devices", rows, limit, skip)

    def list_variants(self, name: str | None = None, limit: Limit = _ROWS, skip: Skip = 0) -> Answer:
        """List the model files of the farm, newest first, or those with a text in their name."""
        return _rows("variants", self._farm.newest_variants(name=name, every=True), limit, skip)

    def show_harness(self, name: str) -> Answer:
        """Show a harness: its backends, its flags with their defaults, and its programs."""
        return _document(self._farm.harness(name))

    def list_matrices(
        self,
        name: str | None = None,
        since: Past = None,
        mine: bool = False,
        limit: Limit = _ROWS,
        skip: Skip = 0,
    ) -> Answer:
        """List matrices, newest first: state, progress, and who submitted them."""
        found = self._farm.matrices(since=_past(since), name=name, mine=mine)
        return _rows("matrices", found, limit, skip)

    def show_matrix(self, matrix_id: int) -> Answer:
        """Show a matrix: its progress on each device, its cells with their outcomes, and what is not run."""
        return _document(self._farm.matrix(MatrixId(matrix_id)))

    def why_waiting(self, matrix_id: int) -> Answer:
        """Show what the pending jobs of a matrix wait for, and what helps."""
        return _document(self._farm.matrix_waiting(MatrixId(matrix_id)))

    def speedups(
        self,
        matrix_id: int | None = None,
        device: str | None = None,
        model: str | None = None,
        baseline: str | None = None,
        candidate: str | None = None,
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
        return _rows("speedups", found, limit, skip)

    def history(
        self,
        device: str | None = None,
        model: str | None = None,
        harness: str | None = None,
        variant: str | None = None,
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
        return _rows("series", rows, limit, skip)

    def regressions(
        self,
        since: Past = None,
        device: str | None = None,
        model: str | None = None,
        every: bool = False,
        limit: Limit = _ROWS,
        skip: Skip = 0,
    ) -> Answer:
        """List what became slower, since when and because of what; with `every` improvements, too."""
        found = self._farm.changes(since=_past(since), device=device, model=model, every=every)
        return _rows("changes", found, limit, skip)

    def explain_cell(self, cell_id: int) -> Answer:
        """Show everything that a comparison rests on: rounds, what is left out, files, device, conditions."""
        return _document(self._farm.explain_cell(CellId(cell_id)))

    def show_attempt(self, attempt_id: int) -> Answer:
        """Show one run on a device: command, outcome, quality, times, and the ends of what it printed."""
        view = self._farm.attempt(AttemptId(attempt_id))
        document = _document(view.model_copy(update={"trace": None}))
        for name in ("stdout", "stderr"):
            text = (document["evidence"] or {}).get(name)
            if isinstance(text, str) and len(text) > _STREAM_CHARACTERS:
                document["evidence"][name] = f"...{text[-_STREAM_CHARACTERS:]}"
        return document

    def plan_matrix(self, matrix: MatrixText) -> Answer:
        """Show what a matrix would expand to: cells, jobs, devices and what cannot run. Queues nothing."""
        return _document(self._farm.plan_matrix(read_matrix(matrix)))

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
        return _document(self._farm.submit_matrix(spec))

    def cancel_matrix(self, matrix_id: int) -> Answer:
        """Cancel the unfinished jobs of a matrix of the caller; what is measured stays."""
        self._own(matrix_id)
        return _document(self._farm.cancel_matrix(MatrixId(matrix_id)))

    def rerun_matrix(self, matrix_id: int, failed: bool = True) -> Answer:
        """Submit a matrix of the caller again: its cells without a valid number, or all of them."""
        self._own(matrix_id)
        return _document(self._farm.rerun_matrix(MatrixId(matrix_id), failed=failed))

    def _own(self, matrix_id: int) -> MatrixView:
        """Return a matrix of the caller.

        Raises:
            Forbidden: someone else submitted it.
        """
        view = self._farm.matrix(MatrixId(matrix_id))
        if view.submitted_by != self._caller.name:
            owner = view.submitted_by or "an unknown person"
            raise Forbidden(
                f"matrix {matrix_id} is of {owner}, not of {self._caller.name}",
                hint="a person can do that: `farm matrix cancel` and `farm matrix rerun`",
            )
        return view


def farm_server(farm: FarmClient, caller: CallerView) -> MCPServer[Any]:
    """Return a server with the tools that the role of the caller permits."""
    server: MCPServer[Any] = MCPServer(
        "benchfarm", version=__version__, instructions=_INSTRUCTIONS, log_level="WARNING"
    )
    tools = FarmTools(farm, caller)
    looks: tuple[Callable[..., Answer], ...] = (
        *(tools.list_devices, tools.list_variants, tools.show_harness, tools.list_matrices),
        *(tools.show_matrix, tools.why_waiting, tools.show_attempt, tools.explain_cell),
        *(tools.speedups, tools.history, tools.regressions, tools.plan_matrix),
    )
    changes: tuple[Callable[..., Answer], ...] = (
        *(tools.submit_matrix, tools.cancel_matrix, tools.rerun_matrix),
    )
    for look in looks:
        server.tool(annotations=_LOOKS)(_reported(look))
    if is_permitted(caller.role, Role.SUBMITTER):
        for change in changes:
            server.tool(annotations=_CHANGES)(_reported(change))
    return server


def _reported(tool: Callable[P, Answer]) -> Callable[P, Answer]:
    """Return a tool whose errors have the farm's code and hint."""

    @functools.wraps(tool)
    def call(*args: P.args, **kwargs: P.kwargs) -> Answer:
        try:
            return tool(*args, **kwargs)
        except FarmError as error:
            raise ToolError(f"{error.message} (hint: {error.hint}) [{error.code}]") from error

    return call


def _past(text: str | None) -> datetime | None:
    return past_moment(text, option="since")


def _document(view: object) -> Answer:
    document: Answer = to_jsonable_python(view)
    return document


def _newest_points(view: SeriesHistory, most: int) -> Answer:
    newest = view.model_copy(update={"points": view.points[-most:]})
    return _document(newest) | {"points_left_out": len(view.points) - len(newest.points)}


def _rows(name: str, views: Iterable[object], limit: int, skip: int) -> Answer:
    """Return a page of rows, and the place where the next one begins; null at the end."""
    rows = list(islice(views, skip, skip + limit + 1))
    next_skip = skip + limit if len(rows) > limit else None
    return {name: [to_jsonable_python(row) for row in rows[:limit]], "next_skip": next_skip}
