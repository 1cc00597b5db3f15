"""Documents about changes in the history of series: what was found, its evidence, and what people say."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from pydantic import Field

from farm.core.base.ids import DeviceId, MatrixId, SeriesId
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Format, PrecisionWord
from farm.core.results.history.confirmation import ConfirmationOutcome
from farm.core.results.history.recorded_change import ChangeState, RecordedChange
from farm.wire.base import Wire
from farm.wire.documents.files.programs import Text

#: Changes that one answer lists at most, and series of one change.
MAX_CHANGES_PAGE = 200
MAX_CHANGED_SERIES = 100


class CommonSetup(Wire):
    """What all series of a change run. Fields are empty where they differ, or the harness runs no model."""

    model: str | None
    precision: PrecisionWord | None
    format: Format | None
    memory_format: str | None
    #: The backend that the model file was built for.
    target: str | None
    #: The requested backend.
    backend: str | None
    #: The flags that are not the harness's defaults.
    changed_settings: dict[str, SettingValue] | None
    harness: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeView(RecordedChange):
    """GET /api/v1/changes: a lasting change of one series or of many, those told last first."""

    #: Of the device that all changed series are on; None for several devices, or without a label.
    device_label: str | None
    #: New time over old time, with its 95 % interval: 2 is twice as slow.
    ratio: float
    ratio_low: float
    ratio_high: float
    #: Series that show it.
    series: int
    #: What they run, and what their baselines run; None without any baseline.
    setup: CommonSetup
    baseline_setup: CommonSetup | None


class ChangedSeriesView(Wire):
    """A series that shows a change, with its sessions on both sides, 20 at most on each."""

    series_id: SeriesId
    baseline_series_id: SeriesId | None
    device_id: DeviceId
    device_label: str | None
    model: str | None
    harness: str
    label: str
    baseline: str | None
    #: The change of the logarithm of time by this series alone; None without a session on both sides.
    delta: float | None
    before_sessions: int
    after_sessions: int
    #: Medians over sessions, nanoseconds; None without a session.
    before_ns: float | None
    after_ns: float | None
    #: Baseline time over time; None without a baseline.
    before_speedup: float | None
    after_speedup: float | None
    #: The matrix of the last session of the old level, and those of the new one.
    before_matrix_id: MatrixId | None
    after_matrix_ids: tuple[MatrixId, ...]


class ChangeDecision(Wire):
    """What a person said of a change."""

    state: ChangeState
    reason: str
    decided_by: str
    decided_at: datetime


class ConfirmationView(Wire):
    """The comparison of the old file or program with the new one that the farm made for a change."""

    outcome: ConfirmationOutcome
    matrix_id: MatrixId | None
    device_id: DeviceId | None
    device_label: str | None
    #: Why it is impossible.
    reason: str | None
    #: The new one's time over the old one's, with its interval; None unless both were measured.
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None


class ChangeDetail(Wire):
    """GET /api/v1/changes/ID: a change with its evidence."""

    change: ChangeView
    #: None where the cause is neither file nor program, or none was begun yet.
    confirmation: ConfirmationView | None
    #: The first 100 of its series.
    evidence: tuple[ChangedSeriesView, ...]
    #: Newest first.
    decisions: tuple[ChangeDecision, ...]


class ChangeStateRequest(Wire):
    """POST /api/v1/changes/ID/state: say what a change is."""

    state: ChangeState
    reason: Annotated[Text, Field(min_length=1)]
