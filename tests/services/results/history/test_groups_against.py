"""Speedups over devices against any cell as a baseline, whether a matrix planned the pair or not."""

import math
from datetime import timedelta
from statistics import mean

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput
from farm.core.results.history.chosen_labels import PairChoice
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups.listing import list_speedups
from farm.wire.documents.results.history import GroupBy
from tests.services.results.history.test_groups_and_lists import THREE_FLAGS
from tests.services.results.history.test_latest_speedups import ONE_PHONE, Unsteady
from tests.services.results.history.test_retractions import retract
from tests.support.database.sent_statements import sent_to
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence


def measured(
    farm: FarmRig, host: HostRig, *warmups: int, device: str = "phone-1", baseline: int | None = None
) -> MatrixId:
    """Measure cells that differ by a flag, the first one as the baseline of the others, if no other is."""
    matrix_id = farm.submit(
        devices={"device_id": device},
        axes={**THREE_FLAGS, "warmup": [*warmups]},
        baseline={"warmup": warmups[0] if baseline is None else baseline},
        rounds=2,
    )
    host.run(good_evidence)
    return matrix_id


def axes_of(model: str) -> dict[str, object]:
    return {"model": model, "format": "torchscript", "backend": "cpu"}


def two_phones(host: HostRig) -> None:
    host.plug_in("phone-2")
    host.earn_health()


def test_a_comparison_over_devices_takes_four_statements_and_no_facts(farm: FarmRig, host: HostRig) -> None:
    def statements(connection: Connection, **words: str) -> list[str]:
        with sent_to(connection) as sent:
            group_speedups(connection, GroupBy.DEVICE_MODEL, model="mobilenet_v2", **words)
        if connection.dialect.name == "postgresql":
            # It would plan the list of comparisons again each time if it had a parameter.
            assert [not values for sql, values in sent if "RECURSIVE" in sql] == [True]
        return [sql for sql, _ in sent if not sql.startswith("BEGIN")]

    for groups in (1, 2):
        farm.submit(devices={"virtual": True}, rounds=2)
        host.run(good_evidence)
        compute_points(farm)
        found = farm.read(statements)
        assert len(farm.read(group_speedups, GroupBy.DEVICE_MODEL)) == groups
        assert len(found) == 4, found
        assert not [sql for sql in found if "device_facts" in sql]
        # No more with a baseline: none for pairs that were not planned.
        chosen = farm.read(statements, baseline="float32", candidate="int8")
        assert len(chosen) == 4, chosen
        host.plug_in("phone-3", device_model="another one")
        host.earn_health()


def test_groups_compare_any_two_cells_that_ran_in_one_block(farm: FarmRig, host: HostRig) -> None:
    for number in (2, 3):
        host.plug_in(f"phone-{number}")
    host.earn_health()
    farm.submit(devices={"virtual": True}, axes=THREE_FLAGS, baseline={"warmup": 0}, rounds=2)
    host.run(Unsteady(farm))
    choice = PairChoice(baseline="warmup=2", candidate="warmup=1")
    for compute in (lambda: 0, lambda: compute_points(farm)):
        compute()
        (own,) = farm.read(group_speedups, GroupBy.ALL, baseline="warmup=2", candidate="warmup=1")
        assert (own.devices, own.of_devices, own.model) == (3, 3, "mobilenet_v2")
        by_device = [view.speedup or 0.0 for view in farm.read(list_latest_speedups, choice=choice)]
        assert own.speedup == pytest.approx(math.exp(mean(map(math.log, by_device))))
        assert own.low < own.speedup < own.high
        assert own.ci_low is not None
        assert own.ci_low < own.low
        # Whoever planned it, one pair is one row.
        both = farm.read(group_speedups, GroupBy.ALL, baseline="warmup=2")
        assert [view.candidate.split()[-1] for view in both] == ["warmup=0", "warmup=1"]
        assert own in both
        now = farm.clock.now()
        assert farm.read(group_speedups, GroupBy.ALL, baseline="warmup=2", at=now) == both
        assert farm.read(group_speedups, GroupBy.ALL, baseline="warmup=2", since=now + timedelta(1)) == []


def test_groups_of_cells_that_never_ran_in_one_block_are_refused(farm: FarmRig, host: HostRig) -> None:
    for warmup in (1, 2):
        axes = {**THREE_FLAGS, "warmup": [0, warmup]}
        farm.submit(devices={"virtual": True}, axes=axes, baseline={"warmup": 0}, rounds=2)
        host.run(good_evidence)
    with pytest.raises(InvalidInput, match="no block") as refused:
        farm.read(group_speedups, GroupBy.ALL, baseline="warmup=2", candidate="warmup=1")
    assert refused.value.hint is not None


def test_a_label_of_another_model_chooses_nothing_of_this_one(farm: FarmRig, host: HostRig) -> None:
    for precision in ("float32", "int8-core"):
        farm.variant(precision, model="mobilenet_v3")
    farm.submit(axes={**axes_of("mobilenet_v3"), "precision": ["float32", "int8-core"]}, rounds=2)
    host.run(good_evidence)
    matrix_id = farm.submit(
        axes={
            **axes_of("mobilenet_v2"),
            "precision": ["float32", "int8-core"],
            "warmup": [0, 1],
        },
        exclude=[{"precision": "float32", "warmup": 1}, {"precision": "int8-core", "warmup": 0}],
        baseline={"precision": "float32", "warmup": 0},
        devices=ONE_PHONE,
        rounds=2,
    )
    host.run(good_evidence)
    chosen = PairChoice(baseline="float32", candidate="int8-core")
    pending = farm.read(list_latest_speedups, model="mobilenet_v2", choice=chosen)
    compute_points(farm)
    (own,) = farm.read(list_latest_speedups, model="mobilenet_v2", choice=chosen)
    assert [own] == pending
    assert (own.baseline, own.candidate) == ("float32 warmup=0", "int8-core warmup=1")
    (of_matrix,) = farm.read(list_speedups, matrix_id, model="mobilenet_v2", choice=chosen)
    assert of_matrix.speedup == own.speedup
    words = {"model": "mobilenet_v2", "baseline": "float32"}
    (group,) = farm.read(group_speedups, GroupBy.ALL, **words)
    assert (group.baseline, group.candidate) == (own.baseline, own.candidate)


def test_a_planned_pair_that_was_retracted_hides_no_other_block_of_both(farm: FarmRig, host: HostRig) -> None:
    two_phones(host)
    words = {"baseline": "warmup=2", "candidate": "warmup=1"}
    for device in ("phone-1", "phone-2"):
        measured(farm, host, 0, 1, 2, device=device)
    retracted = measured(farm, host, 2, 1)
    compute_points(farm)
    retract(farm, matrix_id=retracted)
    (pending,) = farm.read(group_speedups, GroupBy.ALL, **words)
    assert pending.devices == 2
    compute_points(farm)
    (view,) = farm.read(group_speedups, GroupBy.ALL, **words)
    assert (view.devices, view.of_devices) == (pending.devices, pending.of_devices)


def test_a_device_of_which_all_was_retracted_did_not_measure_the_model(farm: FarmRig, host: HostRig) -> None:
    two_phones(host)
    measured(farm, host, 0, 1, 2)
    retracted = measured(farm, host, 0, 1, 2, device="phone-2")
    compute_points(farm)
    retract(farm, matrix_id=retracted)
    for compute in (lambda: 0, lambda: compute_points(farm)):
        compute()
        (view,) = farm.read(group_speedups, GroupBy.ALL, baseline="warmup=2", candidate="warmup=1")
        assert (view.devices, view.of_devices) == (1, 1)


def test_an_ambiguous_baseline_of_one_device_hides_no_pair_of_another(farm: FarmRig, host: HostRig) -> None:
    for number in (2, 3):
        host.plug_in(f"phone-{number}")
    host.earn_health()
    # Both 1 and 11 have the word, and of the first phone it may be either.
    measured(farm, host, 0, 11, 12)
    measured(farm, host, 1, 0, device="phone-2")
    measured(farm, host, 0, 1, 2, device="phone-3")
    measured(farm, host, 0, 1)
    compute_points(farm)
    views = farm.read(group_speedups, GroupBy.DEVICE, baseline="warmup= 1", candidate="warmup=0")
    assert [view.group for view in views] == ["phone-2", "phone-3"]


def test_only_devices_without_the_planned_pair_are_asked_for_other_blocks(
    farm: FarmRig, host: HostRig
) -> None:
    two_phones(host)
    words = {"baseline": "warmup=2", "candidate": "warmup=1"}
    measured(farm, host, 2, 1)
    measured(farm, host, 0, 1, 2, device="phone-2")
    for compute in (lambda: 0, lambda: compute_points(farm)):
        compute()
        (view,) = farm.read(group_speedups, GroupBy.ALL, **words)
        assert (view.devices, view.of_devices) == (2, 2)
        # Without a candidate, planned pairs do not tell which others there are.
        both = farm.read(group_speedups, GroupBy.ALL, baseline="warmup=2")
        assert [(own.candidate.split()[-1], own.devices) for own in both] == [
            ("warmup=0", 1),
            ("warmup=1", 2),
        ]
