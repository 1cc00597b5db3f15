"""How far a matrix is, and how long it will still take."""

from farm.core.devices.device import Presence
from farm.database.transaction import bind_tx
from farm.services.matrices.views import list_matrix_summaries
from tests.support.database.sent_statements import sent_to
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence, torch_output


def one_round(farm: FarmRig, host: HostRig, seconds: float, *, short: bool = False) -> None:
    """Run what every free phone has next."""
    farm.clock.advance(seconds)
    for assignment in host.exchange().assignments:
        bad = ended(assignment, torch_output([1000.0] * 4))
        host.report(assignment.attempt_id, bad if short else good_evidence(assignment))
        host.clean(assignment)


def test_time_left_goes_by_the_pace_of_the_slowest_phone(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    assert farm.matrix(matrix_id).eta_s is None
    for _ in range(4):
        one_round(farm, host, 10)
    view = farm.matrix(matrix_id)
    assert (view.eta_s, view.without_eta) == (60.0, ())
    assert [device.eta_s for device in view.progress] == [60.0, 60.0]
    farm.clock.advance(4)
    assert farm.matrix(matrix_id).eta_s == 56.0


def test_a_block_that_is_measured_again_adds_its_jobs(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"})
    one_round(farm, host, 10)
    one_round(farm, host, 10)
    assert farm.matrix(matrix_id).eta_s == 80.0
    one_round(farm, host, 10, short=True)
    assert farm.matrix(matrix_id).eta_s == 90.0


def test_a_phone_that_waits_for_a_person_is_left_out_and_named(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit()
    for _ in range(3):
        one_round(farm, host, 10)
    away = host.phones["phone-2"].model_copy(update={"presence": Presence.UNAUTHORIZED})
    host.phones["phone-2"] = away
    host.exchange()
    view = farm.matrix(matrix_id)
    assert view.without_eta == ("phone-2",)
    assert view.eta_s is not None
    (summary,) = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
    assert (summary.eta_s, summary.without_eta) == (view.eta_s, view.without_eta)


def test_a_matrix_whose_phones_all_wait_for_a_person_has_no_time(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(devices={"device_id": "phone-1"})
    for _ in range(3):
        one_round(farm, host, 10)
    del host.phones["phone-1"]
    host.exchange()
    assert farm.matrix(matrix_id).eta_s is None


def test_a_finished_matrix_has_nothing_left(farm: FarmRig, host: HostRig) -> None:
    matrix_id = farm.submit(rounds=1)
    host.run()
    assert farm.matrix(matrix_id).eta_s == 0.0
    (summary,) = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
    assert summary.finished_at is not None


def test_only_devices_with_open_jobs_are_asked_for_what_they_wait_for(farm: FarmRig, host: HostRig) -> None:
    """A farm has ten thousand devices, and most matrices are finished."""

    def asked() -> list[set[str]]:
        with sent_to(farm.database.engine) as sent:
            farm.matrix(matrix_id)
            farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
        values = [own for sql, own in sent if "JOIN hosts" in sql]
        known = {"phone-1", "phone-2"}
        return [known.intersection(own.values() if isinstance(own, dict) else own) for own in values]

    matrix_id = farm.submit(rounds=1)
    assert asked() == [{"phone-1", "phone-2"}] * 2
    away = host.phones["phone-2"].model_copy(update={"presence": Presence.UNAUTHORIZED})
    host.phones["phone-2"] = away
    host.run()
    assert asked() == [{"phone-2"}] * 2
    view = farm.matrix(matrix_id)
    assert [device.waiting_for for device in view.progress] == [(), ("the device is not online",)]
    assert (view.eta_s, view.without_eta) == (None, ("phone-2",))
    host.phones["phone-2"] = away.model_copy(update={"presence": Presence.ONLINE})
    host.run()
    assert farm.matrix(matrix_id).finished_at is not None
    assert asked() == []
