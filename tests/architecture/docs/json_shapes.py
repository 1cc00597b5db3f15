"""What commands print with `--json`, by type: docs/json.md lists it, and a test compares it with output."""

from typing import Any

from farm.core.models.variant import Variant
from farm.core.operations.event import Event
from farm.wire.documents.devices import DeviceDetail, DeviceView, UsageView
from farm.wire.documents.files.programs import AdapterView, HarnessView, ProgramView
from farm.wire.documents.hosts import HostDetail, HostView
from farm.wire.documents.matrices.jobs import AttemptView, JobView
from farm.wire.documents.matrices.matrices import MatrixResults, MatrixSummary, MatrixView
from farm.wire.documents.matrices.pending import JobPendingView, MatrixPendingView
from farm.wire.documents.matrices.plans import CancellationView, MatrixPlanView
from farm.wire.documents.matrices.standing import StandingSummary, StandingView
from farm.wire.documents.operations import AlarmView
from farm.wire.documents.results.bisect import BisectView
from farm.wire.documents.results.changes import ChangeDetail, ChangeView
from farm.wire.documents.results.explain import CellExplanation, JobDetail, JobExplanation
from farm.wire.documents.results.history import GroupSpeedupView, SeriesHistory
from farm.wire.documents.results.imports import ExternalResultView, ImportView
from farm.wire.documents.results.rerun import RerunPlan, RerunResult
from farm.wire.documents.results.results import PlacedSeries
from farm.wire.documents.results.speedups import SpeedupView

#: By command, without `farm` and `--json`.
SHAPES: dict[str, Any] = {
    "speedups": list[SpeedupView],
    "history show MODEL": list[SeriesHistory],
    "regressions": list[ChangeView],
    "regressions show CHANGE": ChangeDetail,
    "regressions set CHANGE STATE --reason TEXT": ChangeView,
    "speedups --by GROUP": list[GroupSpeedupView],
    "run": MatrixResults,
    "compare A B": MatrixResults,
    "bisect": BisectView,
    "matrix submit FILE --watch": MatrixResults,
    "matrix rerun ID --watch": MatrixResults,
    "matrix submit FILE": MatrixView,
    "matrix rerun ID": MatrixView,
    "matrix show ID": MatrixView,
    "matrix plan FILE": MatrixPlanView,
    "matrix list": list[MatrixSummary],
    "matrix stand FILE": StandingView,
    "matrix standing": list[StandingSummary],
    "matrix standing NAME": StandingView,
    "matrix jobs ID": list[JobView],
    "matrix why ID": MatrixPendingView,
    "matrix cancel ID": CancellationView,
    "job show ID": JobDetail,
    "job why ID": JobPendingView,
    "attempt show ID": AttemptView,
    "rerun ATTEMPT --dry-run": RerunPlan,
    "rerun ATTEMPT --no-watch": MatrixView,
    "rerun ATTEMPT": RerunResult,
    "explain cell ID": CellExplanation,
    "explain job ID": JobExplanation,
    "placement": list[PlacedSeries],
    "import list": list[ImportView],
    "import results": list[ExternalResultView],
    "variant list": list[Variant],
    "variant show NAME": Variant,
    "harness list": list[ProgramView],
    "harness list --adapters": list[AdapterView],
    "harness show NAME": HarnessView,
    "device list": list[DeviceView],
    "device list --usage": list[UsageView],
    "device show ID": DeviceDetail,
    "host list": list[HostView],
    "host show ID": HostDetail,
    "alarms": list[AlarmView],
}
#: One document on each line.
LINES: dict[str, Any] = {"events": Event}
