"""How far a matrix is, and how long it will still take."""

import random
import threading
from concurrent.futures import ThreadPoolExecutor

from farm.core.devices.device import Presence
from farm.database.transaction import bind_tx
from farm.services.matrices.views import list_matrix_lines, list_matrix_summaries, matrix_view
from farm.store.jobs.counted_matrices import CountedMatrices
from farm.store.jobs.finished_matrices import FinishedMatrices
from farm.store.jobs.running_jobs import RunningJobs
from farm.store.jobs.running_matrices import RunningMatrices
from tests.support.database.sent_statements import sent_to
from tests.support.farm.direct_calls import cancel_matrix
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
        return [{name for name in ("phone-1", "phone-2") if f'"{name}"' in str(own)} for own in values]

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


NAMES = ("phone-1", "phone-2", "phone-3")


def test_a_list_says_the_same_of_matrices_that_are_queued_run_and_ended(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host(*NAMES)
    counted = CountedMatrices()

    def compare() -> list[str]:
        lines = farm.read(list_matrix_lines, counted, limit=9)
        summaries = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()))
        known = farm.read(bind_tx(list_matrix_summaries, now=farm.clock.now()), counted=counted)
        assert known == summaries
        for line, summary in zip(lines, summaries, strict=True):
            for name in ("matrix_id", "name", "state", "created_at", "jobs", "jobs_by_outcome"):
                assert getattr(line, name) == getattr(summary, name), name
        return [line.state for line in lines]

    farm.submit()
    assert compare() == ["running"]
    for assignment in host.exchange().assignments:
        host.report(assignment.attempt_id, good_evidence(assignment))
        host.clean(assignment)
    assert compare() == ["running"]
    host.run()
    assert compare() == ["finished"]
    farm.submit()
    assert compare() == ["running", "finished"]
    host.run()
    assert compare() == ["finished", "finished"]


def test_a_finished_matrix_is_counted_once(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host(*NAMES)
    matrix_id = farm.submit()
    host.run()
    finished = FinishedMatrices()

    def statements() -> list[str]:
        with sent_to(farm.database.engine) as sent:
            assert matrix_id in farm.read(finished.find, [matrix_id])
        return [str(statement) for statement in sent]

    assert any("group by" in statement.lower() for statement in statements())
    again = statements()
    assert not any("group by" in statement.lower() for statement in again), again


def test_a_page_of_devices_has_the_progress_of_the_whole(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host(*NAMES)
    matrix_id = farm.submit()
    view = bind_tx(matrix_view, now=farm.clock.now())
    for _ in range(2):
        whole = farm.read(view, matrix_id)
        first = farm.read(view, matrix_id, devices=("", 2))
        rest = farm.read(view, matrix_id, devices=(first.progress[-1].device_id, 2))
        assert (*first.progress, *rest.progress) == whole.progress
        for page in (first, rest):
            assert dict(page) == {**dict(whole), "progress": page.progress}
        host.run()


def one_turn(farm: FarmRig, host: HostRig, chance: random.Random) -> None:
    """Run what every free phone has next; some runs are short, so that their block is measured again."""
    farm.clock.advance(5)
    for assignment in host.exchange().assignments:
        bad = ended(assignment, torch_output([1000.0] * 4))
        host.report(assignment.attempt_id, bad if chance.random() < 0.3 else good_evidence(assignment))
        host.clean(assignment)


def test_what_was_counted_and_what_happened_since_is_what_there_is(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host(*NAMES)
    running, chance = RunningMatrices(), random.Random(7)
    numbers = [farm.submit(rounds=4), farm.submit(rounds=4)]

    def compare() -> None:
        assert farm.read(running.find, numbers) == farm.read(RunningMatrices().find, numbers)
        # Some are looked at more often than others.
        farm.read(running.find, numbers[:1])

    compare()
    for turn in range(20):
        one_turn(farm, host, chance)
        if turn % 3:
            compare()
        if turn == 8:
            numbers.append(farm.submit(rounds=1))
        if turn == 12:
            farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="ann"), numbers[1], device=None)
    compare()
    repeats = farm.read(running.find, numbers)[numbers[0]].repeats
    assert len(repeats) == farm.matrix(numbers[0]).repeated_blocks > 0


def test_a_look_at_a_running_matrix_does_not_group_all_of_its_jobs_again(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id, running = farm.submit(), RunningMatrices()

    def statements() -> list[str]:
        with sent_to(farm.database.engine) as sent:
            farm.read(running.find, [matrix_id])[matrix_id]
        return [str(statement).lower() for statement, _ in sent]

    assert any("coalesce" in statement for statement in statements())
    one_round(farm, host, 10)
    again = statements()
    assert not any("coalesce" in statement or "row_number" in statement for statement in again)
    others = [farm.submit(rounds=1) for _ in range(3)]
    farm.read(running.find, [matrix_id, *others])
    with sent_to(farm.database.engine) as sent:
        farm.read(running.find, [matrix_id, *others])
    assert len(sent) <= len(again)


def test_looks_beside_writers_are_of_one_moment_each_and_lose_nothing(farm: FarmRig, host: HostRig) -> None:
    matrix_id, running = farm.submit(rounds=6), RunningMatrices()
    jobs = farm.read(running.find, [matrix_id])[matrix_id].tally().total
    looks: list[RunningJobs] = []
    is_over = threading.Event()

    has_looked = threading.Event()

    def look() -> None:
        while not is_over.is_set():
            looks.append(farm.read(running.find, [matrix_id])[matrix_id])
            has_looked.set()

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(look) for _ in range(3)]
        try:
            for _ in range(6):
                has_looked.clear()
                one_round(farm, host, 5)
                assert has_looked.wait(timeout=60)
        finally:
            is_over.set()
    for reader in readers:
        reader.result()
    assert len(looks) >= 6
    for counted in looks:
        tally = counted.tally()
        assert tally.total == jobs
        assert min(tally.jobs_by_outcome.values()) >= 0
    assert (
        farm.read(running.find, [matrix_id])[matrix_id]
        == farm.read(RunningMatrices().find, [matrix_id])[matrix_id]
    )
    assert farm.read(running.find, [matrix_id])[matrix_id].tally().finished > 0
