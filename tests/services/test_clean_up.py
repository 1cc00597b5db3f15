"""A phone goes to the next attempt only when nothing of the last one is left on it."""

from farm_rig import FarmRig, HostRig, good_evidence, phase

from farm.core.attempt import AttemptState


def test_a_phone_gets_no_work_until_it_is_clean_up_to_its_last_claim(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    host.report(assignment.attempt_id, good_evidence(assignment))
    assert host.exchange().assignments == ()
    host.clean(assignment.model_copy(update={"fence": assignment.fence - 1}))
    assert host.exchange().assignments == ()
    host.clean(assignment)
    assert len(host.exchange().assignments) == 1


def test_an_attempt_its_agent_never_heard_of_leaves_the_phone_free(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    host.exchange()  # the answer is lost, and the agent restarts with an empty journal
    host.restart()
    (again,) = host.exchange().assignments
    assert host.report(again.attempt_id, good_evidence(again)).counted


def test_an_attempt_that_was_given_back_is_waited_for_while_the_agent_holds_it(
    farm: FarmRig, host: HostRig
) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    held = phase(assignment, AttemptState.PREPARING)
    host.restart([held])
    assert host.exchange([held]).assignments == ()
    assert len(host.exchange().assignments) == 1


def test_a_phone_ahead_of_the_database_raises_its_token(farm: FarmRig, host: HostRig) -> None:
    before = host.phones["phone-1"]
    host.phones["phone-1"] = before.model_copy(update={"cleaned_fence": 500})
    farm.submit(devices={"device_id": "phone-1"})
    (assignment,) = host.exchange().assignments
    assert assignment.fence == 501


def test_a_cpu_is_free_only_when_the_last_phone_on_it_is_clean(farm: FarmRig, host: HostRig) -> None:
    _share_a_cpu(host)
    farm.submit()
    (first,) = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    assert host.exchange().assignments == ()
    host.clean(first)
    (second,) = host.exchange().assignments
    assert second.device_id != first.device_id


def test_a_phone_that_went_away_uncleaned_does_not_hold_the_cpu(farm: FarmRig, host: HostRig) -> None:
    _share_a_cpu(host)
    farm.submit()
    (first,) = host.exchange().assignments
    host.report(first.attempt_id, good_evidence(first))
    host.phones.pop(first.device_id)
    (second,) = host.exchange().assignments
    assert second.device_id != first.device_id


def _share_a_cpu(host: HostRig) -> None:
    for device_id in ("phone-1", "phone-2"):
        host.plug_in(device_id, cpu_domain="host-cpu")
