"""A farm, as the commands find it: what it has, what it measured, and new matrices."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeVar

from benchfarm.calls import checked_calls
from benchfarm.files import Harnesses, StoredFiles, Variants
from benchfarm.frames.device_frame import DeviceFrame
from benchfarm.frames.frame import Frame
from benchfarm.frames.result_frames import ChangeFrame, HistoryFrame, result_frame
from benchfarm.frames.samples import Samples, load_samples
from benchfarm.frames.speedup_frame import SpeedupFrame
from benchfarm.imports import Imports
from benchfarm.run import Run
from benchfarm.run_spec import model_spec, past_time, program_matrix, read_spec
from benchfarm.selection import select_views
from farm.cli.shell.address import connect_to, farm_url
from farm.client.farm_client import FarmClient
from farm.core.base.ids import CellId, JobId, MatrixId
from farm.core.base.setting_values import SettingValue
from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput, NotFound, SelectorEmpty
from farm.core.results.history.recorded_change import ChangeCause, ChangeState
from farm.wire.documents.access import CallerView
from farm.wire.documents.devices import DeviceView
from farm.wire.documents.matrices.matrices import CellView, MatrixSummary
from farm.wire.documents.matrices.plans import MatrixPlanView
from farm.wire.documents.matrices.standing import plannable_spec
from farm.wire.documents.results.changes import ChangeDetail
from farm.wire.documents.results.explain import CellExplanation, JobExplanation
from farm.wire.documents.results.history import GroupBy, GroupSpeedupView
from farm.wire.documents.results.results import PlacedSeries, ResultView

C = TypeVar("C", bound=StrEnum)

#: Devices of a run: names, selectors like `soc:SM8*`, or what `Farm.devices` returned.
Devices = str | DeviceView | DeviceFrame | Sequence[str | DeviceView]
#: A time, or how long ago: `12h`, `7d`, `2026-03-01`.
Past = datetime | str


@checked_calls
class Farm:
    """One farm, as one caller.

    Without arguments it is the farm that the commands use: FARM_URL, else the farm that runs in the data
    folder, else the one of `farm login`, with its token. All calls raise `FarmError`, with code and hint.
    """

    def __init__(self, url: str | None = None, *, token: str | None = None) -> None:
        """Find the farm; nothing is sent yet.

        Args:
            url: the address; None finds it as the commands do.
            token: an access token; None for that of the environment or of the login.

        Raises:
            InvalidInput: the address is none, or the stored login cannot be read.
        """
        address = url or farm_url()
        self.client = connect_to(address) if token is None else FarmClient(address, token=token)
        self.variants = Variants(self.client)
        self.harnesses = Harnesses(self.client)
        self.files = StoredFiles(self.client)
        self.imports = Imports(self.client)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<Farm {self.url}>"

    @property
    def url(self) -> str:
        """Return the address of the farm, where its pages are."""
        return self.client.url

    def close(self) -> None:
        """Close the connections."""
        self.client.close()

    def whoami(self) -> CallerView:
        """Return the caller's name and role."""
        return self.client.caller()

    def devices(self, *selectors: str) -> DeviceFrame:
        """Return all devices, or those that fit any of the selectors.

        Args:
            selectors: `KEY:VALUE` like `soc:SM8*`, several with blanks between them for devices that fit all,
                or a name: an id, a label or a device model. The keys are those of a matrix.

        Raises:
            SelectorEmpty: one of them fits no device.
        """
        as_of = datetime.now(UTC)
        return DeviceFrame(select_views(self.client, selectors), as_of=as_of)

    def run(
        self,
        path: str | Path | Sequence[str | Path] | None,
        *,
        harness: str | Sequence[str] | None = None,
        devices: Devices | None = None,
        backend: str | Sequence[str] = (),
        rounds: int = 5,
        settings: Mapping[str, SettingValue] | None = None,
        model: str | None = None,
        precision: str | None = None,
        inputs: Sequence[str] = (),
        timeout_s: float = 120.0,
        key: str | None = None,
    ) -> Run:
        """Measure model files or variants on devices; the first file or backend is the baseline.

        Args:
            path: a model file, which is registered if it is new, or the name of a variant, or several; None
                for a harness that runs no model.
            harness: None takes the only one of the farm that runs files of a format; several, one for each.
            devices: None for all active devices that are present.
            backend: names; empty for cpu, or the first that the harness has.
            rounds: process starts of each cell.
            settings: flags of the harness.
            model: the name of the network of a new file; None for the name of the file.
            precision: of a new file.
            inputs: declared ones of the file, such as `1x3x224x224:float32`.
            timeout_s: the time-out of one process.
            key: as that of `submit`.

        Raises:
            NotFound: there is no such file, variant or harness.
            SelectorEmpty: a selector fits no device.
            InvalidInput: a flag, a backend or the file is not possible.
        """
        spec = model_spec(
            self.client,
            path,
            harness=harness,
            devices=self._device_ids(devices),
            backends=(backend,) if isinstance(backend, str) else tuple(backend),
            rounds=rounds,
            settings=settings or {},
            model=model,
            precision=precision,
            inputs=inputs,
            timeout_s=timeout_s,
        )
        return self.submit(spec, key=key)

    def run_program(
        self,
        program: str | Path,
        *arguments: str,
        devices: Devices | None = None,
        rounds: int = 5,
        time: str | None = None,
        metrics: Sequence[str] = (),
        name: str | None = None,
        timeout_s: float = 120.0,
        key: str | None = None,
    ) -> Run:
        """Measure a program or script of your own; `time` and `metrics` are as those of `farm run`."""
        spec = program_matrix(
            self.client,
            Path(program),
            arguments,
            devices=self._device_ids(devices),
            rounds=rounds,
            time=time,
            metrics=metrics,
            name=name,
            timeout_s=timeout_s,
        )
        return self.submit(spec, key=key)

    def submit(self, matrix: Mapping[str, Any] | str | Path, *, key: str | None = None) -> Run:
        """Submit a matrix, once: a dictionary, the text of a matrix file, or the path of one.

        With a `key` of your own, the matrix that was submitted with it before is returned.

        Raises:
            InvalidInput: it is not a matrix, or names what the farm does not have.
        """
        return Run(self, self.client.submit_matrix(read_spec(matrix), key=key))

    def plan(self, matrix: Mapping[str, Any] | str | Path) -> MatrixPlanView:
        """Return what a matrix would expand to, or one for `farm matrix stand`; nothing is queued."""
        return self.client.plan_matrix(read_spec(matrix, check=plannable_spec))

    def matrix(self, matrix_id: int) -> Run:
        """Return a matrix by its number."""
        return Run(self, self.client.matrix(MatrixId(matrix_id)))

    def matrices(
        self,
        *,
        since: Past | None = None,
        name: str | None = None,
        mine: bool = False,
        limit: int | None = None,
    ) -> list[MatrixSummary]:
        """Return the matrices since a time, of a name or of the caller, newest first, up to `limit`."""
        return list(self.client.matrices(since=past_time(since), name=name, mine=mine, limit=limit))

    def speedups(
        self,
        *,
        matrix: int | None = None,
        device: str | None = None,
        model: str | None = None,
        baseline: str | None = None,
        candidate: str | None = None,
        name: str | None = None,
        mine: bool = False,
        across_controls: bool = False,
        since: Past | None = None,
        at: Past | None = None,
        limit: int | None = None,
    ) -> SpeedupFrame:
        """Return every candidate against its baseline: of a matrix, or the newest of each pair.

        The arguments are the options of `farm speedups`.
        """
        known_at = past_time(at)
        as_of = known_at or datetime.now(UTC)
        views = self.client.speedups(
            matrix_id=None if matrix is None else MatrixId(matrix),
            device=device,
            model=model,
            baseline=baseline,
            candidate=candidate,
            name=name,
            mine=mine,
            across_controls=across_controls,
            since=past_time(since),
            at=known_at,
            limit=limit,
        )
        return SpeedupFrame(views, as_of=as_of)

    def group_speedups(
        self,
        by: GroupBy | str,
        *,
        model: str | None = None,
        baseline: str | None = None,
        candidate: str | None = None,
        since: Past | None = None,
        at: Past | None = None,
    ) -> list[GroupSpeedupView]:
        """Return the newest speedups over devices of one device model, chip or Android, or over all."""
        return self.client.group_speedups(
            _choice(GroupBy, by, "by"),
            model=model,
            baseline=baseline,
            candidate=candidate,
            since=past_time(since),
            at=past_time(at),
        )

    def results(self, matrix: int) -> Frame[ResultView]:
        """Return every cell of a matrix over its rounds."""
        as_of = datetime.now(UTC)
        return result_frame(self.client.results(MatrixId(matrix)), as_of=as_of)

    def samples(self, matrix: int, *, cell: int | None = None) -> Samples:
        """Return every iteration of the accepted measurements of a matrix, or of one of its cells.

        Raises:
            NotFound: there is no such matrix, or the matrix has no such cell.
        """
        samples = load_samples(self.client, MatrixId(matrix), None if cell is None else CellId(cell))
        if cell is not None and not samples.attempts:
            _check_cell(self.client.cells(MatrixId(matrix)), matrix, cell)
        return samples

    def history(
        self,
        *,
        device: str | None = None,
        model: str | None = None,
        harness: str | None = None,
        variant: str | None = None,
        since: Past | None = None,
        name: str | None = None,
        mine: bool = False,
        limit: int | None = None,
    ) -> HistoryFrame:
        """Return the sessions of every series, filtered as by `farm history show`."""
        as_of = datetime.now(UTC)
        views = self.client.history(
            device=device,
            model=model,
            harness=harness,
            variant=variant,
            since=past_time(since),
            name=name,
            mine=mine,
            limit=limit,
        )
        return HistoryFrame(views, as_of=as_of)

    def regressions(
        self,
        *,
        since: Past | None = None,
        device: str | None = None,
        model: str | None = None,
        cause: ChangeCause | str | None = None,
        state: ChangeState | str | None = None,
        name: str | None = None,
        mine: bool = False,
        every: bool = False,
        limit: int | None = None,
    ) -> ChangeFrame:
        """Return what became slower, newest first; with `every` improvements, too."""
        as_of = datetime.now(UTC)
        views = self.client.changes(
            since=past_time(since),
            device=device,
            model=model,
            cause=None if cause is None else _choice(ChangeCause, cause, "cause"),
            state=None if state is None else _choice(ChangeState, state, "state"),
            name=name,
            mine=mine,
            every=every,
            limit=limit,
        )
        return ChangeFrame(views, as_of=as_of)

    def regression(self, change_id: int) -> ChangeDetail:
        """Return one change with its evidence."""
        return self.client.change(change_id)

    def placements(self, *, matrix: int | None = None, device: str | None = None) -> list[PlacedSeries]:
        """Return the hardware that each series ran on."""
        return self.client.placements(matrix_id=None if matrix is None else MatrixId(matrix), device=device)

    def explain(self, cell: int) -> CellExplanation:
        """Return everything that the comparison of a cell rests on."""
        return self.client.explain_cell(CellId(cell))

    def explain_job(self, job: int) -> JobExplanation:
        """Return the evidence and conditions behind one measurement."""
        return self.client.explain_job(JobId(job))

    def _device_ids(self, devices: Devices | None) -> tuple[str, ...]:
        if devices is None:
            return ()
        listed = (devices,) if isinstance(devices, str | DeviceView) else tuple(devices)
        words = [each for each in listed if isinstance(each, str)]
        ids = [str(each.device_id) for each in listed if isinstance(each, DeviceView)]
        found = [str(view.device_id) for view in self.devices(*words)] if words else []
        if not ids and not found:
            hint = "None means all active devices that are present"
            raise SelectorEmpty("`devices` is empty: no device would run anything", hint=hint)
        return tuple(dict.fromkeys([*ids, *found]))


def _choice(kind: type[C], word: str, argument: str) -> C:
    """Return one of the words of an argument. Raises InvalidInput."""
    try:
        return kind(word)
    except ValueError:
        hint = name_hint(word, list(kind)) or f"it is one of {', '.join(kind)}"
        raise InvalidInput(f"{argument} is not {word!r}", hint=hint) from None


def _check_cell(cells: Iterable[CellView], matrix: int, cell: int) -> None:
    """Raise NotFound if a matrix has no such cell."""
    if all(view.cell_id != cell for view in cells):
        raise NotFound(f"matrix {matrix} has no cell {cell}", hint="`Run.cells()` returns its cells")
