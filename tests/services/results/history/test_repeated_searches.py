"""Searches for changes while matrices of a day end, one after the other: what was told stays told."""

from datetime import timedelta

from farm.core.base.microseconds import to_microseconds
from farm.core.results.history.recorded_change import ChangeCause
from farm.core.runs.evidence import Evidence
from farm.services.results.history.changes import list_changes
from farm.services.results.history.trends import list_histories
from farm.store.results.history.detection_points import devices_measured_since
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.changes import ChangeView
from farm.wire.documents.results.history import VersionPart
from tests.services.results.history.test_changes import search
from tests.support.farm.points import all_points, compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence


def alone(precision: str, **devices: object) -> dict[str, object]:
    """A matrix of one cell a phone, which is compared with none: its times alone are searched."""
    axes = {"model": "mobilenet_v2", "precision": precision, "format": "torchscript", "backend": "cpu"}
    return {"axes": axes, "baseline": None, "devices": devices}


OWN = alone("float32", virtual=True)
OTHER = alone("int8-core", device_id="phone-1")


class Unsteadily:
    """Runs whose times differ a little from start to start."""

    def __init__(self, sample_us: float) -> None:
        self.sample_us = sample_us
        self.count = 0

    def __call__(self, assignment: Assignment) -> Evidence:
        self.count += 1
        return good_evidence(assignment, sample_us=self.sample_us * (1 + self.count * 7 % 20 / 2000))


def measure(
    farm: FarmRig, host: HostRig, matrix: dict[str, object], sample_us: float, *, later: timedelta
) -> list[ChangeView]:
    """Run a matrix some time after the one before, and return what `farm regressions` lists then."""
    farm.clock.advance(later.total_seconds())
    host.exchange()
    farm.submit(**matrix)
    host.run(Unsteadily(sample_us))
    compute_points(farm)
    search(farm)
    return farm.read(list_changes)


def test_a_doubled_time_is_told_at_once_on_both_phones_and_stays_told(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    hours, minutes = timedelta(hours=3), timedelta(minutes=4)
    assert measure(farm, host, OTHER, 500.0, later=minutes) == []
    assert measure(farm, host, OWN, 1000.0, later=hours) == []
    assert measure(farm, host, OWN, 1000.0, later=minutes) == []
    farm.variant("float32", edition="2")
    (told,) = measure(farm, host, OWN, 2000.0, later=minutes)
    assert (told.cause, told.devices, told.of_devices) == (ChangeCause.FILE, 2, 2)
    assert 1.9 < told.ratio < 2.1
    for matrix, sample_us, later in [
        (OTHER, 500.0, minutes),
        (OWN, 2000.0, minutes),
        (OTHER, 500.0, hours),
        (OWN, 2000.0, hours),
    ]:
        (again,) = measure(farm, host, matrix, sample_us, later=later)
        assert (again.change_id, again.gone_at) == (told.change_id, None)
        assert (again.devices, again.of_devices) == (2, 2)
        assert 1.9 < again.ratio < 2.1


def test_each_of_two_new_files_of_a_day_has_its_own_change(farm: FarmRig, host: HostRig) -> None:
    host.earn_health()
    minutes = timedelta(minutes=4)
    for edition, sample_us in (("2", 500.0), ("3", 1000.0)):
        measure(farm, host, OWN, 1000.0 if edition == "2" else 500.0, later=minutes)
        farm.variant("float32", edition=edition)
        measure(farm, host, OWN, sample_us, later=minutes)
    digests = [
        row["digest"]
        for row in farm.rows("SELECT digest FROM variants WHERE name LIKE '%float32%' ORDER BY variant_id")
    ]
    slower, quicker = sorted(farm.read(list_changes, all=True), key=lambda change: -change.ratio)
    for change, old, new in ((quicker, 0, 1), (slower, 1, 2)):
        assert [(version.old, version.new) for version in change.versions] == [(digests[old], digests[new])]


def test_a_file_that_has_its_name_again_is_a_break_at_both_turns(farm: FarmRig, host: HostRig) -> None:
    host.earn_health()
    times = (("", 1000.0), ("2", 2000.0), ("", 1000.0))
    for edition, sample_us in times:
        farm.variant("float32", edition=edition)
        for _ in range(2):
            measure(farm, host, OWN, sample_us, later=timedelta(hours=3))
    file = (VersionPart.FILE,)
    for history in farm.read(list_histories):
        assert [point.changed for point in history.points] == [(), (), file, (), file, ()]
    slower, quicker = sorted(farm.read(list_changes, all=True), key=lambda change: -change.ratio)
    assert slower.cause is quicker.cause is ChangeCause.FILE
    [there], [back] = slower.versions, quicker.versions
    assert (there.old, there.new) == (back.new, back.old)


def test_a_phone_counts_that_ended_its_part_of_the_matrix_before_the_other(
    farm: FarmRig, host: HostRig
) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    earlier = farm.submit(**OWN)
    host.run(Unsteadily(1000.0))
    matrix_id = farm.submit(**OWN)
    host.run(Unsteadily(2000.0))
    compute_points(farm)
    measured = [point for point in all_points(farm) if point.matrix_id == matrix_id]
    last = max(to_microseconds(point.ended_at) for point in measured if point.ended_at is not None)
    slots = {row["slot"] for row in farm.rows("SELECT slot FROM points")}
    assert farm.read(devices_measured_since, slots, last, [matrix_id]) == 2
    assert farm.read(devices_measured_since, slots, last, [earlier]) == 1
