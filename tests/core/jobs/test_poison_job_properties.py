"""What makes two phones go away is run no more; what one phone does by itself proves nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId
from farm.core.errors import DeviceError
from farm.core.jobs.poison_job import WENT_AWAY, Loss, killed_devices

CODES = st.sampled_from([*sorted(WENT_AWAY), "device.timeout", "device.push_failed", "host.incident", None])
LOSSES = st.lists(
    st.builds(Loss, device_id=st.integers(1, 4).map(lambda n: DeviceId(f"phone-{n}")), code=CODES)
)


@given(losses=LOSSES)
@pytest.mark.fault(53)
def test_a_killer_has_lost_two_different_phones(losses: list[Loss]) -> None:
    lost = {loss.device_id for loss in losses if loss.code in WENT_AWAY}
    assert killed_devices(losses) == (tuple(sorted(lost)) if len(lost) >= 2 else ())


@given(losses=LOSSES)
def test_one_phone_however_often_it_is_lost_makes_no_killer(losses: list[Loss]) -> None:
    assert killed_devices([loss for loss in losses if loss.device_id == "phone-1"]) == ()


@given(losses=LOSSES, more=LOSSES)
def test_a_killer_stays_one_whatever_else_happens(losses: list[Loss], more: list[Loss]) -> None:
    assert set(killed_devices(losses)) <= set(killed_devices([*losses, *more]))


def test_the_codes_are_those_of_phones_that_go_away() -> None:
    known = {kind.code for kind in DeviceError.__subclasses__()}
    assert known >= WENT_AWAY
