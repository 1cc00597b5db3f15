"""The value of one simulated process start, as the farm's pairing expects it."""

import math

from farm.core.devices.controls import ControlLevel
from farm.core.results.pairing import JoinedValue
from farm.core.runs.measurement import Quality, SampleKind

#: Of a start without a deviation.
VALUE_NS = 1e7


def simulated_start(
    round: int, log: float, *, block: int = 0, step_ns: int = 0, quality: Quality = Quality.VALID
) -> JoinedValue:
    """Return a start whose time deviates from `VALUE_NS` by `log` on the log scale."""
    return JoinedValue(
        round=round,
        block=block,
        repeat=0,
        value_ns=VALUE_NS * math.exp(log),
        clock_step_ns=step_ns,
        kind=SampleKind.SAMPLES,
        quality=quality,
        control_level=ControlLevel.FREE,
        facts_id=None,
    )
