"""Several people's matrices share a phone in turns; one person's run in the order they came."""

import pytest

from farm.core.base.ids import MatrixId
from farm.database.transaction import bind_tx
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.support.farm.direct_calls import submit_matrix
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

ONE_CELL = {"model": "mobilenet_v2", "precision": ["float32"], "format": "torchscript", "backend": "cpu"}


def submit(farm: FarmRig, who: str, *, rounds: int, **changes: object) -> MatrixId:
    spec = {
        "name": who,
        "harness": "speed_benchmark_torch",
        "axes": {**ONE_CELL, "precision": ["float32", "int8-core"]},
        "settings": {"iter": 5},
        "devices": {"device_id": "phone-1"},
        "rounds": rounds,
        "seed": 7,
        **changes,
    }
    return farm.write(bind_tx(submit_matrix, now=farm.clock.now(), actor=f"user:{who}"), matrix_spec(spec))


def order(farm: FarmRig, host: HostRig) -> str:
    """The first letters of those whose jobs ran, one after the other."""
    while assignments := host.exchange().assignments:
        for each in assignments:
            farm.clock.advance(1)
            host.report(each.attempt_id, good_evidence(each))
            host.clean(each)
    ran = farm.rows(
        "SELECT m.name FROM attempts a JOIN jobs j ON j.job_id = a.job_id"
        " JOIN matrices m ON m.matrix_id = j.matrix_id ORDER BY a.attempt_id"
    )
    return "".join(row["name"][0] for row in ran)


@pytest.mark.invariant("I13")
@pytest.mark.fault(54)
def test_a_flood_lets_others_in_after_the_round_that_is_under_way(farm: FarmRig, host: HostRig) -> None:
    submit(farm, "flood", rounds=6)
    (first,) = host.exchange().assignments
    submit(farm, "small", rounds=2)
    host.report(first.attempt_id, good_evidence(first))
    host.clean(first)
    assert order(farm, host) == "ff" + "ss" + "ff" + "ss" + "ff" * 4


def test_ones_own_matrices_run_in_the_order_they_came(farm: FarmRig, host: HostRig) -> None:
    for name in ("anna", "anna"):
        submit(farm, name, rounds=2)
    submit(farm, "ben", rounds=2)
    times = "min(virtual_time) f, max(virtual_time) l"
    sql = f"SELECT {times} FROM jobs WHERE matrix_id IS NOT NULL GROUP BY matrix_id"
    one, two, _ = farm.rows(f"{sql} ORDER BY matrix_id")
    assert two["f"] > one["l"]
    assert order(farm, host) == "aabb" * 2 + "aa" * 2


def test_what_is_more_urgent_goes_first_whoever_waits(farm: FarmRig, host: HostRig) -> None:
    submit(farm, "flood", rounds=2)
    submit(farm, "urgent", rounds=2, priority=5)
    assert order(farm, host) == "uuuu" + "ffff"
