"""What a person retracts is kept, is compared with nothing, and was there for those who ask of the past."""

from datetime import timedelta

import pytest

from farm.core.base.ids import AttemptId, CellId, MatrixId
from farm.core.errors import FarmError, InvalidInput, NotFound
from farm.core.runs.measurement import Quality
from farm.database.transaction import bind_tx
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.retractions import apply_retraction
from farm.services.results.history.trends import list_histories
from farm.services.results.speedups.listing import list_speedups
from farm.wire.documents.results.history import RetractRequest
from tests.services.results.history.test_latest_speedups import measured
from tests.support.farm.points import all_points, compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig


def retract(farm: FarmRig, *, limit: int = 3, reason: str = "a swollen battery", **what: object) -> int:
    """Retract all of a selection, piece by piece, as the client does; how many measurements that were."""
    farm.clock.advance(60)
    count, has_more = 0, True
    while has_more:
        service = bind_tx(apply_retraction, now=farm.clock.now(), actor="user:ann")
        page = farm.write(service, RetractRequest(reason=reason, **what), limit=limit)
        count, has_more = count + page.measurements, page.has_more
    return count


def test_a_retracted_matrix_is_compared_with_nothing_and_an_older_one_is_newest_again(
    farm: FarmRig, host: HostRig
) -> None:
    old, new = measured(farm, host, rounds=5), measured(farm, host, rounds=5)
    compute_points(farm)
    assert retract(farm, matrix_id=new, device="phone-1") == 10
    (after,) = farm.read(list_latest_speedups)
    assert after.matrices == (old,)
    compute_points(farm)
    assert farm.read(list_latest_speedups) == [after]
    (view,) = farm.read(list_speedups, new)
    assert view.speedup is None
    assert [left.reason for left in view.left_out] == ["the baseline is withdrawn"]
    (history, _) = sorted(farm.read(list_histories), key=lambda view: view.baseline is None)
    assert [point.matrix_id for point in history.points] == [old]


def test_what_was_known_before_a_retraction_is_the_answer_as_of_then(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host, rounds=5)
    farm.clock.advance(3600)
    before = farm.clock.now()
    known = farm.read(list_latest_speedups)
    compute_points(farm)
    retract(farm, matrix_id=first)
    compute_points(farm)
    assert farm.read(list_latest_speedups) == []
    assert farm.read(list_latest_speedups, at=before) == known
    assert farm.read(list_speedups, first, at=before) == known
    with pytest.raises(NotFound, match=f"matrix {first} did not exist yet at that time"):
        farm.read(list_speedups, first, at=before - timedelta(days=1))
    assert farm.read(list_latest_speedups, at=farm.clock.now()) == []
    retract(farm, matrix_id=first, undo=True)
    assert farm.read(list_latest_speedups) == known
    assert farm.read(list_latest_speedups, at=before) == known
    assert farm.read(list_latest_speedups, at=farm.clock.now() - timedelta(seconds=1)) == []
    compute_points(farm)
    assert farm.read(list_latest_speedups) == known


def test_as_known_at_a_time_is_what_was_asked_for_then(farm: FarmRig, host: HostRig) -> None:
    moments = []
    for rounds in (2, 5, 1):
        measured(farm, host, rounds=rounds)
        farm.clock.advance(100)
        moments.append((farm.clock.now(), farm.read(list_latest_speedups)))
        farm.clock.advance(100)
    compute_points(farm)
    for at, known in moments:
        assert farm.read(list_latest_speedups, at=at) == known
    assert farm.read(list_latest_speedups, at=moments[0][0] - timedelta(days=1)) == []


def test_only_sessions_since_a_time_are_listed(farm: FarmRig, host: HostRig) -> None:
    measured(farm, host, rounds=5)
    farm.clock.advance(100)
    begin = farm.clock.now()
    assert farm.read(list_latest_speedups, since=begin) == []
    new = measured(farm, host, rounds=1)
    for compute in (lambda: 0, lambda: compute_points(farm)):
        compute()
        assert [view.matrices for view in farm.read(list_latest_speedups, since=begin)] == [(new,)]
        histories = farm.read(list_histories, since=begin)
        assert {point.matrix_id for view in histories for point in view.points} == {new}


def test_a_retraction_is_told_with_author_and_reason_and_done_again_it_does_nothing(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = measured(farm, host, rounds=2)
    attempts = [row["attempt_id"] for row in farm.rows("SELECT attempt_id FROM measurements")]
    assert retract(farm, attempt_id=attempts[0]) == 1
    assert retract(farm, attempt_id=attempts[0]) == 0
    assert retract(farm, matrix_id=matrix_id) == 3
    (event, *others) = farm.rows("SELECT actor, cause FROM events WHERE kind = 'job_retracted'")
    assert event == {"actor": "user:ann", "cause": "a swollen battery"}
    assert len(others) == 3
    rows = farm.rows("SELECT quality, retracted_by FROM measurements WHERE accepted")
    assert {(row["quality"], row["retracted_by"]) for row in rows} == {(Quality.WITHDRAWN, "user:ann")}
    assert retract(farm, cell_id=1, undo=True) == 2
    assert retract(farm, cell_id=1) == 2


@pytest.mark.parametrize(
    ("what", "error"),
    [
        ({}, InvalidInput),
        ({"matrix_id": MatrixId(1), "cell_id": CellId(1)}, InvalidInput),
        ({"cell_id": CellId(1), "device": "phone-1"}, InvalidInput),
        ({"matrix_id": MatrixId(77)}, NotFound),
        ({"matrix_id": MatrixId(1), "device": "phone-77"}, NotFound),
        ({"cell_id": CellId(77)}, NotFound),
        ({"attempt_id": AttemptId(77)}, NotFound),
        ({"matrix_id": MatrixId(1)}, NotFound),
    ],
)
def test_what_cannot_be_retracted_is_refused_with_a_hint(
    farm: FarmRig, host: HostRig, what: dict[str, object], error: type[FarmError]
) -> None:
    farm.submit(devices={"device_id": "phone-1"})
    with pytest.raises(error) as refusal:
        retract(farm, **what)
    assert refusal.value.hint


def test_points_are_what_is_left_after_a_retraction(farm: FarmRig, host: HostRig) -> None:
    measured(farm, host, rounds=4)
    compute_points(farm)
    (attempt, *_) = farm.rows("SELECT attempt_id FROM measurements ORDER BY measurement_id")
    retract(farm, attempt_id=attempt["attempt_id"])
    compute_points(farm)
    (point,) = [point for point in all_points(farm) if point.baseline_slot is not None]
    assert (point.values.rounds, point.values.left_out) == (3, 1)
