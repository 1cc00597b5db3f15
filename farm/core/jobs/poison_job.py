"""Poison jobs: work that lost two different devices."""

from collections.abc import Iterable
from dataclasses import dataclass

from farm.core.base.ids import DeviceId
from farm.core.errors import AdbdRestarted, DeviceLost, DeviceRebooted

#: Code of jobs whose work lost devices.
POISON_JOB = "job.poison"
#: Codes of attempts that lost their device.
DEVICE_GONE_CODES = frozenset({DeviceLost.code, DeviceRebooted.code, AdbdRestarted.code})
#: One device may disconnect independently; a second one lost to equal work is no accident.
MIN_DISTINCT_DEVICES = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceLoss:
    """An attempt that ended through its phone."""

    device_id: DeviceId
    code: str | None


def poisoned_devices(losses: Iterable[DeviceLoss]) -> tuple[DeviceId, ...]:
    """Return the devices lost to equal work; empty while they may have failed on their own.

    Args:
        losses: of attempts at equal work: variant, program, backend and settings of one matrix.
    """
    lost = {loss.device_id for loss in losses if loss.code in DEVICE_GONE_CODES}
    return tuple(sorted(lost)) if len(lost) >= MIN_DISTINCT_DEVICES else ()
