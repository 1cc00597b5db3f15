"""What counts as an update of a phone."""

from typing import Any

import pytest

from farm.core.base.ids import FactsId
from farm.core.devices.device import DeviceFacts, Gpu, NnapiDriver
from farm.core.devices.software_version import build_by_facts, software_changes


def facts(**changes: Any) -> DeviceFacts:
    known: dict[str, Any] = {
        "build_fingerprint": "one",
        "kernel": "6.1",
        "gpu": Gpu(driver="V@1", driver_text="V@1 (a)", vulkan_driver="512.1.0"),
        "nnapi": (NnapiDriver(name="npu", version="3", running=True),),
    }
    return DeviceFacts(serialno="p", device_model="Phone", work_root="/tmp", **{**known, **changes})


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"build_fingerprint": "two"}, ["build one to two"]),
        ({"kernel": "6.6"}, ["kernel 6.1 to 6.6"]),
        ({"gpu": Gpu(driver="V@2", vulkan_driver="512.1.0")}, ["GPU driver V@1 (a) to V@2"]),
        ({"gpu": Gpu(driver_text="V@1 (a)", vulkan_driver="512.2.0")}, ["Vulkan driver 512.1.0 to 512.2.0"]),
        ({"nnapi": (NnapiDriver(name="npu", version="4"),)}, ["NNAPI driver npu 3 to 4"]),
        ({"nnapi": (NnapiDriver(name="dsp", version="3"),)}, ["NNAPI drivers npu to dsp"]),
        ({"nnapi": (NnapiDriver(name="npu", version="3", running=False),)}, []),
        ({"gpu": None, "nnapi": (), "kernel": None}, []),
        ({"memory_bytes": 1, "root": True, "market_name": "Phone One"}, []),
    ],
)
def test_only_versions_that_both_looks_tell_are_compared(changed: dict[str, Any], words: list[str]) -> None:
    assert [str(change) for change in software_changes(facts(), facts(**changed))] == words


def test_snapshots_that_differ_in_nothing_updated_are_one_build() -> None:
    snapshots = [facts(), facts(memory_bytes=1), facts(build_fingerprint="two"), facts(root=True)]
    numbers = build_by_facts({FactsId(index): each for index, each in enumerate(snapshots, start=5)})
    assert numbers == {5: 0, 6: 0, 7: 1, 8: 0}
