"""What makes two phones go away is run no more; what one phone does by itself proves nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId
from farm.core.errors import AdbdRestarted, DeviceError, DeviceLost, DeviceRebooted
from farm.core.jobs.retry import DEVICE_GONE_CODES, DeviceLoss, poisoned_devices

CODES = st.sampled_from(
    [*sorted(DEVICE_GONE_CODES), "device.timeout", "device.push_failed", "host.incident", None]
)
LOSSES = st.lists(
    st.builds(DeviceLoss, device_id=st.integers(1, 4).map(lambda n: DeviceId(f"phone-{n}")), code=CODES)
)


@given(losses=LOSSES)
@pytest.mark.fault(53)
def test_a_poison_job_has_lost_two_different_phones(losses: list[DeviceLoss]) -> None:
    lost = {loss.device_id for loss in losses if loss.code in DEVICE_GONE_CODES}
    assert poisoned_devices(losses) == (tuple(sorted(lost)) if len(lost) >= 2 else ())


@given(losses=LOSSES)
def test_one_phone_however_often_it_is_lost_makes_no_killer(losses: list[DeviceLoss]) -> None:
    assert poisoned_devices([loss for loss in losses if loss.device_id == "phone-1"]) == ()


@given(losses=LOSSES, more=LOSSES)
def test_a_killer_stays_one_whatever_else_happens(losses: list[DeviceLoss], more: list[DeviceLoss]) -> None:
    assert set(poisoned_devices(losses)) <= set(poisoned_devices([*losses, *more]))


@pytest.mark.fault(53)
@pytest.mark.parametrize("error", [DeviceLost, DeviceRebooted, AdbdRestarted])
def test_every_way_in_which_a_device_goes_away_counts(error: type[DeviceError]) -> None:
    losses = [DeviceLoss(device_id=DeviceId(name), code=error.code) for name in ("phone-1", "phone-2")]
    assert poisoned_devices(losses) == ("phone-1", "phone-2")


def test_no_other_code_counts() -> None:
    assert {DeviceLost.code, DeviceRebooted.code, AdbdRestarted.code} == DEVICE_GONE_CODES
