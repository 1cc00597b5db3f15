"""Reports whose numbers no phone could mean: they are settled like any other."""

from dataclasses import replace
from typing import Any

import pytest

from farm.core.runs.evidence import ExitRecord
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

_TOO_BIG = 10**30


@pytest.mark.parametrize(
    "change",
    [
        {"pushed_bytes": _TOO_BIG},
        {"stdout_dropped_bytes": _TOO_BIG},
        {"waited_s": 1e308},
        {"exit": ExitRecord(code=_TOO_BIG, duration_s=1.0)},
        {"exit": ExitRecord(code=0, duration_s=1e308)},
        {"stdout": "iters: 9" + "9" * 400},
    ],
    ids=lambda change: next(iter(change)),
)
@pytest.mark.invariant("I4", "I12")
def test_a_number_that_no_row_could_hold_does_not_keep_a_report_from_being_settled(
    farm: FarmRig, host: HostRig, change: dict[str, Any]
) -> None:
    farm.submit()
    first, _ = host.exchange().assignments
    evidence = replace(good_evidence(first), **change)
    assert host.report(first.attempt_id, evidence).counted
