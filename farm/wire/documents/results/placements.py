"""Documents about placements."""

from datetime import datetime

from farm.core.base.ids import AttemptId, DeviceId, SeriesId
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Recipe
from farm.core.runs.measurement import Quality
from farm.core.runs.placement import Placement
from farm.wire.base import Wire


class SeriesPlacementView(Wire):
    """GET /api/v1/placements: a series, with where its newest measurement ran."""

    series_id: SeriesId
    device_id: DeviceId
    model: str | None
    recipe: Recipe | None
    harness: str
    #: What was asked for.
    backend: str
    #: Those that are not the harness's defaults.
    settings: dict[str, SettingValue]
    #: What ran, and on what; `unknown` where nothing shows it.
    actual_backend: str
    accelerator: str
    #: `dsp 136/139, cpu 3`: nodes by hardware, of all.
    words: str
    quality: Quality
    proof: str
    #: None where the CPU is proven by construction, or nothing is.
    placement: Placement | None
    attempt_id: AttemptId
    measured_at: datetime
