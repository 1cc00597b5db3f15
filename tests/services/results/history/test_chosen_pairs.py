"""Pairs that a person chooses by words of their labels, and matrices of a name or a person."""

import pytest

from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput, NotFound
from farm.core.results.history.chosen_labels import PairChoice
from farm.core.results.looks.basis import IntervalKind
from farm.database.transaction import bind_tx
from farm.services.results.history.changes import list_changes
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.history.trends import list_histories
from farm.services.results.speedups.inputs import NEVER_TOGETHER
from farm.services.results.speedups.listing import list_speedups
from farm.store.matrices.search import MatrixFilter, index_names
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.speedups import SpeedupView
from tests.services.results.history.test_latest_speedups import ONE_PHONE
from tests.support.farm.changes import recorded_change
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, plan_of


def measured(farm: FarmRig, host: HostRig, *, cells: int = 4, **spec: object) -> MatrixId:
    """Measure cells whose times are 1, 2, 3, ... ms, the first of them the planned baseline."""
    axes = {
        "model": "mobilenet_v2",
        "precision": "float32",
        "format": "torchscript",
        "backend": "cpu",
        "warmup": list(range(cells)),
    }
    given = {"axes": axes, "baseline": {"warmup": 0}, "rounds": 5, "devices": ONE_PHONE, **spec}
    matrix_id = farm.submit(**given)
    count = 0

    def answer(assignment: Assignment) -> object:
        nonlocal count
        count += 1
        warmup = float(plan_of(assignment).settings.get("warmup", 0))
        return good_evidence(assignment, sample_us=1000.0 * (1 + warmup) + count * 7 % 20)

    host.run(answer)  # type: ignore[arg-type]
    return matrix_id


def pairs(views: list[SpeedupView]) -> list[tuple[str, str]]:
    return [(view.baseline.split()[-1], view.candidate.split()[-1]) for view in views]


AGAINST_1 = PairChoice(baseline="warmup=1")


def test_any_cell_of_a_matrix_is_compared_with_any_other_round_by_round(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host)
    views = farm.read(list_speedups, matrix_id, choice=AGAINST_1)
    assert pairs(views) == [("warmup=1", f"warmup={other}") for other in (0, 2, 3)]
    assert [view.speedup for view in views] == [
        pytest.approx(2 / other, rel=0.02) for other in (1.0, 3.0, 4.0)
    ]
    assert {view.rounds for view in views} == {5}
    assert {view.interval.kind for view in views} == {IntervalKind.PLANNED}
    (one,) = farm.read(list_speedups, matrix_id, choice=PairChoice(baseline="warmup=3", candidate="WARMUP=2"))
    assert pairs([one]) == [("warmup=3", "warmup=2")]
    (planned,) = farm.read(list_speedups, matrix_id, choice=PairChoice(candidate="warmup=2"))
    assert planned == farm.read(list_speedups, matrix_id)[1]
    same = PairChoice(baseline="warmup=0", candidate="warmup=2")
    assert farm.read(list_speedups, matrix_id, choice=same) == [planned]


def test_pages_of_chosen_pairs_are_the_whole(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host)
    for ask in (
        lambda **k: farm.read(list_speedups, matrix_id, **k),
        lambda **k: farm.read(list_latest_speedups, **k),
    ):
        whole = ask(choice=AGAINST_1)
        (first,) = ask(choice=AGAINST_1, limit=1)
        (second,) = ask(choice=AGAINST_1, limit=1, after=first.cell_id)
        rest = ask(choice=AGAINST_1, after=second.cell_id)
        assert [first, second, *rest] == whole
        assert len(whole) == 3


def test_chosen_pairs_are_pooled_over_the_matrices_that_measured_both(farm: FarmRig, host: HostRig) -> None:
    first, second = measured(farm, host, cells=3, rounds=3), measured(farm, host, cells=4, rounds=3)
    choice = PairChoice(baseline="warmup=2", candidate="warmup=1")
    other = PairChoice(baseline="warmup=2", candidate="warmup=3")
    before = farm.read(list_latest_speedups, choice=choice)
    compute_points(farm)
    (pooled,) = farm.read(list_latest_speedups, choice=choice)
    assert [pooled] == before
    assert (pooled.matrices, pooled.rounds) == ((second, first), 6)
    assert pooled.speedup == pytest.approx(1.5, rel=0.02)
    (alone,) = farm.read(list_latest_speedups, choice=other)
    assert alone.matrices == (second,)
    assert pairs(farm.read(list_latest_speedups, choice=PairChoice(candidate="warmup=1"))) == [
        ("warmup=0", "warmup=1")
    ]


def test_cells_that_never_ran_in_one_block_are_not_compared(farm: FarmRig, host: HostRig) -> None:
    # Two blocks of six candidates, and the baseline in both.
    matrix_id = measured(farm, host, cells=13)
    choice = PairChoice(baseline="warmup=1")
    views = farm.read(list_speedups, matrix_id, choice=choice)
    together = [view for view in views if view.speedup]
    apart = [view for view in views if not view.speedup]
    assert len(together) == 6
    assert {view.reason for view in apart} == {NEVER_TOGETHER}
    assert len(apart) == 6
    compute_points(farm)
    assert len(farm.read(list_latest_speedups, choice=choice)) == len(together)


@pytest.mark.parametrize(
    ("choice", "error", "message"),
    [
        (PairChoice(baseline="int9"), NotFound, "no baseline `int9`"),
        (PairChoice(candidate="int9"), NotFound, "no candidate `int9`"),
        (PairChoice(candidate=""), NotFound, "no candidate"),
        (PairChoice(baseline="warmup"), InvalidInput, "may be `.*warmup=0`, `"),
    ],
)
def test_words_that_mean_no_label_or_several_baselines_are_refused(
    farm: FarmRig, host: HostRig, choice: PairChoice, error: type[Exception], message: str
) -> None:
    matrix_id = measured(farm, host, rounds=1)
    for ask in (
        lambda **k: farm.read(list_speedups, matrix_id, **k),
        lambda **k: farm.read(list_latest_speedups, **k),
    ):
        with pytest.raises(error, match=message) as refusal:
            ask(choice=choice)
        assert refusal.value.hint


def test_only_matrices_of_a_name_or_a_person_count(farm: FarmRig, host: HostRig) -> None:
    old = measured(farm, host, cells=2, name="nightly")
    new = measured(farm, host, cells=2, name="by hand")
    index = bind_tx(index_names, now=farm.clock.now())
    change = recorded_change(farm)
    for compute in (lambda: None, lambda: compute_points(farm), lambda: farm.write(index, limit=9)):
        compute()

        def matrices(**which: str) -> list[tuple[MatrixId, ...]]:
            found = farm.read(list_latest_speedups, which=MatrixFilter(**which))
            return [view.matrices for view in found]

        assert matrices(name="NIGHT") == [(old,)]
        assert matrices(name="hand") == [(new,)]
        assert matrices(name="other") == []
        assert matrices(submitted_by="user") == [(new, old)]
        assert matrices(submitted_by="user:ann") == []

        def sessions(**which: str) -> set[MatrixId]:
            found = farm.read(list_histories, which=MatrixFilter(**which))
            return {point.matrix_id for view in found for point in view.points}

        def changes(**which: str) -> list[int]:
            found = farm.read(list_changes, which=MatrixFilter(**which))
            return [view.change_id for view in found]

        assert sessions(name="NIGHT") == {old}
        assert sessions(submitted_by="user") == {old, new}
        assert sessions(submitted_by="user:ann") == set()
        chosen = farm.read(
            list_latest_speedups,
            which=MatrixFilter(name="nightly"),
            choice=PairChoice(baseline="warmup=1", candidate="warmup=0"),
        )
        assert [view.matrices for view in chosen] == [(old,)]
    # Of series that were measured by both.
    assert changes(name="nightly") == changes(name="hand") == changes(submitted_by="user") == [change]
    assert changes(name="other") == changes(submitted_by="user:ann") == []


def test_words_mean_labels_of_the_device_that_is_asked_for_before_the_whole_label_of_another(
    farm: FarmRig, host: HostRig
) -> None:
    host.plug_in("phone-2")
    host.earn_health()
    common = {"model": "mobilenet_v2", "format": "torchscript", "backend": "cpu"}
    precisions = {"precision": ["float32", "int8-core"]}
    own = measured(
        farm,
        host,
        axes=common | precisions | {"warmup": [0, 1]},
        exclude=[{"precision": "float32", "warmup": 1}],
        baseline={"precision": "int8-core", "warmup": 0},
    )
    measured(
        farm,
        host,
        axes=common | precisions,
        baseline={"precision": "float32"},
        devices={"device_id": "phone-2"},
    )
    # The whole label of a cell of phone-2, and a word of one of phone-1.
    choice = PairChoice(baseline="float32")
    for compute in (lambda: None, lambda: compute_points(farm)):
        compute()
        views = farm.read(list_latest_speedups, device="phone-1", choice=choice)
        assert {(view.baseline, view.candidate) for view in views} == {
            ("float32 warmup=0", "int8-core warmup=0"),
            ("float32 warmup=0", "int8-core warmup=1"),
        }
        assert {view.matrices for view in views} == {(own,)}
        (other,) = farm.read(list_latest_speedups, device="phone-2", choice=choice)
        assert (other.baseline, other.candidate) == ("float32", "int8-core")
