"""Files of which an old adbd could not tell whether they arrived whole."""

import pytest

from agents.device.device_cache import LARGEST_V1_BYTES, check_size
from farm.core.base.ids import digest_of
from farm.core.errors import DeviceUnfit
from farm.core.runs.plan import PlanFile

OLD, NEW = frozenset({"shell_v2", "cmd"}), frozenset({"shell_v2", "cmd", "stat_v2"})


def file(size_bytes: int) -> PlanFile:
    return PlanFile(name="weights", digest=digest_of(b"weights"), size_bytes=size_bytes)


@pytest.mark.fault(12)
def test_a_file_from_4_gib_on_is_refused_where_sizes_have_32_bits() -> None:
    with pytest.raises(DeviceUnfit, match=r"phone-1 accepts no file of 4\.29 GB") as refused:
        check_size("phone-1", file(LARGEST_V1_BYTES + 1), OLD)
    assert not refused.value.transient


@pytest.mark.fault(12)
@pytest.mark.parametrize(
    ("size_bytes", "features"), [(LARGEST_V1_BYTES, OLD), (LARGEST_V1_BYTES + 1, NEW), (2**40, NEW)]
)
def test_every_other_file_is_pushed(size_bytes: int, features: frozenset[str]) -> None:
    check_size("phone-1", file(size_bytes), features)
