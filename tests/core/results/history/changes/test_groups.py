"""Changes that no version announced, of several series at once: one change is told, not one for each."""

from collections.abc import Callable
from random import Random

import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause, Point
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch

Holds = Callable[[str, str, str], bool]


def variants_of_a_device(device: str, network: str, variant: str) -> bool:
    return device == "d1" and variant != BASELINE


def one_baseline(device: str, network: str, variant: str) -> bool:
    return (device, network, variant) == ("d1", "n0", BASELINE)


def one_variant_everywhere(device: str, network: str, variant: str) -> bool:
    return (network, variant) == ("n0", "int8")


def without_files(points: list[Point]) -> list[Point]:
    return [point._replace(file="") for point in points]


@pytest.mark.parametrize(("delta", "days"), [(0.05, 5), (0.03, 12), (-0.05, 5)])
def test_a_step_of_all_variants_of_a_device_is_one_change_and_soon_told(delta: float, days: int) -> None:
    """Each of its series needs more sessions than all of them together."""
    shift = Shift(day=30, delta=delta, holds_for=variants_of_a_device)
    (change,) = detect(Sketch(devices=4, networks=3, noise=0.015, shifts=(shift,)).points())
    assert dict(change.scope) == {"device": "d1"}
    assert change.delta == pytest.approx(delta, abs=0.012)
    assert change.told < FIRST_DAY + 30 + days
    assert len(change.evidence) == 6


@pytest.mark.parametrize("file", [(), ((30, "file-2"),)])
def test_a_step_of_one_variant_of_a_device_is_one_change_whatever_its_files_are(
    file: tuple[tuple[int, str], ...],
) -> None:
    """A new file of one network does not explain the others."""
    shift = Shift(
        day=30, delta=0.06, holds_for=lambda device, _, variant: (device, variant) == ("d1", "int8")
    )
    versions = {("file", "d1", "n0", "int8"): file}
    sketch = Sketch(devices=4, networks=3, noise=0.02, shifts=(shift,), versions=versions)
    (change,) = detect(sketch.points())
    assert (change.cause, dict(change.scope)) == (Cause.DEVICE, {"device": "d1", "variant": "int8"})
    assert change.told < FIRST_DAY + 40


def test_one_broken_session_of_a_baseline_does_not_hide_it() -> None:
    shift = Shift(day=30, delta=0.05, holds_for=variants_of_a_device)
    broken = {("d1/n1/base", 33): 0.3}
    points = Sketch(devices=4, networks=3, noise=0.015, shifts=(shift,), broken=broken).points()
    (change,) = detect(points)
    assert dict(change.scope) == {"device": "d1"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("holds", "series", "scope"),
    [
        (variants_of_a_device, None, {"device": "d1"}),
        (one_baseline, "d1/n0/base", {}),
        (one_variant_everywhere, None, {"network": "n0", "variant": "int8"}),
    ],
)
def test_a_drift_of_several_series_is_told_once(
    holds: Holds, series: str | None, scope: dict[str, str]
) -> None:
    shift = Shift(day=30, delta=0.08, holds_for=holds, ramp=40)
    (change,) = detect(Sketch(devices=4, days=90, noise=0.015, shifts=(shift,)).points())
    assert (change.cause, change.series, dict(change.scope)) == (Cause.DRIFT, series, scope)
    assert change.delta > 0


def test_a_drift_of_one_variant_that_is_seen_as_soon_as_a_step_is_one_change() -> None:
    shift = Shift(day=30, delta=0.05, holds_for=one_variant_everywhere, ramp=40)
    (change,) = detect(Sketch(devices=8, days=80, noise=0.004, shifts=(shift,)).points())
    assert (change.cause, dict(change.scope)) == (Cause.DRIFT, {"network": "n0", "variant": "int8"})


def test_a_step_of_a_variant_on_all_devices_is_that_of_its_file_if_no_file_is_known() -> None:
    shift = Shift(day=30, delta=0.05, holds_for=one_variant_everywhere)
    points = Sketch(devices=4, noise=0.015, shifts=(shift,)).points()
    (change,) = detect(without_files(points))
    assert (change.cause, dict(change.scope)) == (Cause.FILE, {"network": "n0", "variant": "int8"})


def test_no_device_is_blamed_for_a_program_that_another_follows_on_the_next_day() -> None:
    """And the update of one device meanwhile puts the programs of the others off by nothing."""
    shift = Shift(day=30, delta=0.05, holds_for=lambda device, network, variant: True)
    versions = {
        ("program", "", "", ""): ((30, "program-2"), (31, "program-3")),
        ("os", "d0", "", ""): ((32, "os-2"),),
    }
    (change,) = detect(Sketch(devices=9, days=45, shifts=(shift,), versions=versions).points())
    assert change.cause is Cause.PROGRAM
    assert change.told <= FIRST_DAY + 33


def test_a_ratio_that_follows_the_heat_of_its_device_does_not_drift() -> None:
    """A series that feels more of the heat than its baseline; the other network shows how warm it is."""
    random, heat = Random(3), 0.0
    points = []
    for point in Sketch(devices=4, days=150, noise=0.01).points():
        if (point.device, point.network, point.variant) == ("d1", "n0", BASELINE):
            heat = 0.95 * heat + random.gauss(0, 0.015)
        if point.device == "d1":
            feels = 1.6 if (point.network, point.variant) == ("n0", "int8") else 1.0
            point = point._replace(
                log_time=point.log_time + feels * heat,
                log_speedup=point.log_speedup - (feels - 1.0) * heat,
            )
        points.append(point)
    assert [change for change in detect(points) if change.cause is not Cause.DEVICE] == []


def test_a_drift_of_a_baseline_beside_one_variant_is_not_taken_for_one_of_the_variant() -> None:
    """By the latest sessions: at its beginning, neither has moved."""
    shift = Shift(day=60, delta=-0.09, ramp=40, holds_for=one_baseline)
    variants = (BASELINE, "int8")
    (change,) = detect(Sketch(devices=3, networks=2, variants=variants, days=120, shifts=(shift,)).points())
    assert (change.series, change.cause) == ("d1/n0/base", Cause.DRIFT)
    assert change.delta < 0


@pytest.mark.parametrize(
    ("holds", "delta", "told"),
    [
        (variants_of_a_device, 0.06, {"device": "d1", "network": "n0"}),
        (one_baseline, -0.06, "d1/n0/base"),
    ],
)
def test_of_one_network_what_moved_more_is_told_though_its_device_wanders(
    holds: Holds, delta: float, told: object
) -> None:
    """Nothing else of the device says whether its variants moved or their baseline."""
    drift = Shift(day=60, delta=delta, ramp=50, holds_for=holds)
    level = Shift(
        day=60, delta=-delta / 3, ramp=50, holds_for=lambda device, network, variant: device == "d1"
    )
    (change,) = detect(Sketch(networks=1, days=100, shifts=(drift, level)).points())
    assert (change.series or dict(change.scope)) == told
    assert change.delta * delta > 0


def hot(days: tuple[int, ...]) -> dict[tuple[str, int], float]:
    """Sessions of a device in which everything takes longer."""
    names = [f"d1/n{at}/{variant}" for at in range(2) for variant in (BASELINE, "int8", "fp16")]
    return {(name, day): 0.1 + day % 3 / 100 for name in names for day in days}


def test_hot_sessions_in_a_row_are_no_step_of_a_device_that_has_many() -> None:
    row = tuple(range(60, 66))
    assert detect(Sketch(days=66, broken=hot((*range(12, 60, 6), *row))).points()) == []
    # On a device that had none, they are one.
    (change,) = detect(Sketch(days=66, broken=hot(row)).points())
    assert (dict(change.scope), change.told) == ({"device": "d1"}, FIRST_DAY + 65)


def matrix_of_each_phone(point: Point) -> Point:
    """Each phone measures a matrix of its own, one after the other."""
    return point._replace(time=point.device, session=f"{point.day} {point.device}")


@pytest.mark.long
def test_phones_with_a_matrix_each_show_a_change_of_a_variant_as_phones_that_share_one_do() -> None:
    shift = Shift(day=30, delta=0.02, holds_for=one_variant_everywhere)
    points = Sketch(devices=8, networks=1, days=50, noise=0.015, shifts=(shift,)).points()
    (together,) = detect(points)
    (apart,) = detect(matrix_of_each_phone(point) for point in points)
    assert (apart.cause, apart.scope) == (together.cause, together.scope)
    assert abs(apart.told - together.told) <= 3
    assert apart.delta == pytest.approx(together.delta, abs=0.005)
