"""What earlier matrices add to a comparison."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.engine import Connection

from farm.core.base.ids import MatrixId, digest_of
from farm.core.devices.controls import ControlLevel
from farm.core.programs.bundle import single_file
from farm.core.runs.evidence import Evidence
from farm.core.runs.measurement import Quality, SampleKind
from farm.database.transaction import bind_tx
from farm.services.results import past_pairs
from farm.services.results.history import listed_pairs
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups.inputs import SpeedupInputs
from farm.services.results.speedups.listing import list_speedups
from farm.services.results.speedups.pairs import CellPair, compared_pairs, comparisons_of
from farm.store.files.artifacts import put_artifact
from farm.store.files.programs import put_program
from farm.store.matrices.matrices import get_matrix, list_cells
from farm.store.results.measurements import Measurement
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.results.speedups import SpeedupView
from tests.support.database.sent_statements import sent_to
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence, plan_of

ONE_PHONE = {"device_id": "phone-1"}


def register_program(farm: FarmRig, content: bytes) -> None:
    """Register a program that new matrices run instead of the previous one."""
    digest = digest_of(content)
    farm.blobs.put([content], digest)
    farm.clock.advance(1)
    farm.write(bind_tx(put_artifact, now=farm.clock.now()), digest, len(content))
    farm.write(
        bind_tx(put_program, now=farm.clock.now()),
        harness="speed_benchmark_torch",
        abi="x86_64",
        bundle=single_file("speed_benchmark_torch", digest, len(content)),
    )


class Unsteady:
    """Runs that differ a little from start to start; int8 takes half of the time."""

    def __init__(self, farm: FarmRig, *, slower: float = 1.0) -> None:
        self.farm = farm
        self.slower = slower
        self.count = 0

    def __call__(self, assignment: Assignment) -> Evidence:
        self.count += 1
        digest = plan_of(assignment).file("model").digest
        (row,) = self.farm.rows("SELECT name FROM variants WHERE digest = :digest", digest=digest)
        base = 1000.0 if "float32" in str(row["name"]) else 500.0 * self.slower
        return good_evidence(assignment, sample_us=base + self.count * 7 % 20)


def measured(farm: FarmRig, host: HostRig, *, slower: float = 1.0, **spec: object) -> MatrixId:
    matrix_id = farm.submit(devices=ONE_PHONE, **spec)
    host.run(Unsteady(farm, slower=slower))
    return matrix_id


def row(views: list[SpeedupView], *, aa: bool = False) -> SpeedupView:
    (view,) = [view for view in views if view.aa is aa]
    return view


def test_one_round_of_a_new_matrix_hides_none_of_an_older_one(farm: FarmRig, host: HostRig) -> None:
    old, new = measured(farm, host, rounds=8), measured(farm, host, rounds=1)
    view = row(farm.read(list_latest_speedups))
    assert (view.rounds, view.matrices) == (9, (new, old))
    assert view.matrix_id == new
    assert row(farm.read(list_speedups, old)).matrices == (old,)


def test_rounds_of_another_program_are_not_pooled(farm: FarmRig, host: HostRig) -> None:
    old = measured(farm, host, rounds=6)
    register_program(farm, b"#!/bin/sh\n# another one\n")
    new = measured(farm, host, rounds=1)
    assert row(farm.read(list_latest_speedups)).matrices == (old,)
    more = measured(farm, host, rounds=5)
    view = row(farm.read(list_latest_speedups))
    assert (view.rounds, view.matrices) == (6, (more, new))


def test_the_past_of_the_same_pair_moderates_its_variance_from_three_matrices_on(
    farm: FarmRig, host: HostRig
) -> None:
    ids = [measured(farm, host, rounds=5) for _ in range(4)]
    moderated = [row(farm.read(list_speedups, matrix_id)).moderated_by for matrix_id in ids]
    assert moderated == [0, 0, 0, 3]


def test_a_past_without_the_duplicate_says_nothing_of_one_with_it(farm: FarmRig, host: HostRig) -> None:
    for _ in range(3):
        measured(farm, host, rounds=5)
    with_duplicate = measured(farm, host, rounds=5, aa=True)
    assert {view.moderated_by for view in farm.read(list_speedups, with_duplicate)} == {0}


def test_the_duplicate_joins_the_baseline_of_other_rows(farm: FarmRig, host: HostRig) -> None:
    matrix_id = measured(farm, host, rounds=5, aa=True)
    views = farm.read(list_speedups, matrix_id)
    own, twin = row(views), row(views, aa=True)
    assert own.baseline_ns == pytest.approx(((twin.baseline_ns or 0) * (twin.candidate_ns or 0)) ** 0.5)


def test_the_alarms_of_a_devices_duplicates_are_counted(farm: FarmRig, host: HostRig) -> None:
    first = measured(farm, host, rounds=5, aa=True)
    second = measured(farm, host, rounds=5, aa=True)
    share = row(farm.read(list_speedups, second), aa=True).aa_alarms
    assert share is not None
    assert share.pairs == 2
    assert row(farm.read(list_speedups, first)).aa_alarms is None


def test_more_pairs_devices_and_uncomputed_matrices_take_no_more_statements(
    farm: FarmRig, host: HostRig
) -> None:
    def sent() -> tuple[int, int]:
        with sent_to(farm.database.engine) as statements:
            rows = len(farm.read(list_latest_speedups))
        return rows, len(statements)

    measured(farm, host, rounds=3, aa=True)
    compute_points(farm)
    measured(farm, host, rounds=3, aa=True)
    rows, of_one_device = sent()
    assert rows == 2
    for _ in range(3):
        farm.submit(rounds=3, aa=True)
        host.run(Unsteady(farm))
    assert sent() == (4, of_one_device)
    compute_points(farm)
    rows, computed = sent()
    assert rows == 4
    assert computed <= of_one_device


def test_the_alarms_of_many_devices_are_read_in_parts(
    farm: FarmRig, host: HostRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read() -> tuple[list[SpeedupView], int]:
        with sent_to(farm.database.engine) as statements:
            views = farm.read(list_latest_speedups)
        return views, len(statements)

    for _ in range(2):
        farm.submit(rounds=5, aa=True)
        host.run(Unsteady(farm))
    at_once, of_one_part = read()
    shares = [view.aa_alarms for view in at_once if view.aa]
    assert [share and share.pairs for share in shares] == [2, 2]
    monkeypatch.setattr(past_pairs, "AA_DEVICES", 1)
    # One statement for the pairs of each device, and one for their measurements.
    assert read() == (at_once, of_one_part + 2)


@pytest.mark.long
@pytest.mark.parametrize("pooled", [1, 2, 20])
def test_uncomputed_sessions_in_parts_are_those_that_are_read_at_once(
    farm: FarmRig, host: HostRig, monkeypatch: pytest.MonkeyPatch, pooled: int
) -> None:
    ids = []
    for number in range(4):
        ids.append(farm.submit(rounds=2, aa=True))
        host.run(Unsteady(farm))
        if number == 0:
            compute_points(farm)
    at_once = farm.read(list_latest_speedups, pooled=pooled)
    assert [view.matrices for view in at_once] == [tuple(ids[::-1][:pooled])] * 4
    monkeypatch.setattr(listed_pairs, "_SESSIONS_AT_ONCE", 1)
    monkeypatch.setattr(listed_pairs, "_FIRST_DEVICES", 1)
    assert farm.read(list_latest_speedups, pooled=pooled) == at_once
    pages = [farm.read(list_latest_speedups, pooled=pooled, limit=3)]
    pages.append(farm.read(list_latest_speedups, pooled=pooled, limit=3, after=pages[0][-1].cell_id))
    assert [view for page in pages for view in page] == at_once


@pytest.mark.long
def test_statements_grow_with_the_logarithm_of_devices(
    farm: FarmRig, host: HostRig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listed_pairs, "_FIRST_DEVICES", 1)

    def sent() -> int:
        farm.submit(rounds=3, aa=True)
        host.run(Unsteady(farm))
        compute_points(farm)
        with sent_to(farm.database.engine) as statements:
            rows = len(farm.read(list_latest_speedups))
        assert rows == 2 * len(host.phones)
        return len(statements)

    sent()
    by_devices = {2: sent()}
    for count in range(3, 9):
        host.plug_in(f"phone-{count}")
        host.earn_health()
        by_devices[count] = sent()
    # One device, then two, then four: the rounds of reading end at three and at seven devices.
    assert by_devices[2] == by_devices[3]
    assert len({by_devices[count] for count in range(4, 8)}) == 1
    assert by_devices[8] - by_devices[7] == by_devices[4] - by_devices[3] > 0


def test_more_matrices_take_no_more_statements(farm: FarmRig, host: HostRig) -> None:
    def sent() -> int:
        compute_points(farm)
        with sent_to(farm.database.engine) as statements:
            assert len(farm.read(list_latest_speedups)) == 2
        return len(statements)

    for _ in range(2):
        measured(farm, host, rounds=3, aa=True)
    of_two = sent()
    for _ in range(3):
        measured(farm, host, rounds=3, aa=True)
    assert sent() == of_two


@pytest.mark.parametrize("rounds", [6, {"at_least": 5, "at_most": 6}], ids=["fixed", "growing"])
def test_what_is_read_without_an_interval_is_what_is_read_with_one(
    sqlite_farm: FarmRig, rounds: object
) -> None:
    sqlite_farm.variant("float32")
    sqlite_farm.variant("int8-core")
    host = sqlite_farm.healthy_host("phone-1")
    matrix_id = measured(sqlite_farm, host, rounds=rounds, aa=True)

    def read(connection: Connection) -> list[SpeedupInputs]:
        matrix = get_matrix(connection, matrix_id)
        return comparisons_of(connection, matrix, list_cells(connection, matrix_id))

    found = sqlite_farm.read(read)
    assert len(found) == 2

    @given(data=st.data(), across_controls=st.booleans())
    def check(data: st.DataObject, across_controls: bool) -> None:
        for own in found:
            baseline, candidate = (data.draw(sides_like(side[0])) for side in own.sides)
            inputs = replace(own, its=replace(own.its, starts=baseline), own=candidate)
            means = inputs.means(across_controls=across_controls)
            result, _, pairs = inputs.judge(across_controls=across_controls)
            assert [*means.usable] == [(pair.baseline, pair.candidate) for pair in pairs]
            assert (means.ratio, means.rounds, means.excluded) == (
                result.ratio,
                result.rounds,
                result.excluded,
            )
            there_are_pairs = bool(inputs.pairs(across_controls=across_controls)[0])
            assert there_are_pairs is (result.ratio is not None)

    check()


def sides_like(one: Measurement) -> st.SearchStrategy[list[Measurement]]:
    """Measurements of a cell with all that makes a difference to what counts."""
    return st.lists(
        st.builds(
            lambda **changes: one._replace(**changes),
            round=st.integers(0, 9),
            repeat=st.integers(0, 1),
            value_ns=st.floats(1e3, 1e9),
            quality=st.sampled_from(
                [Quality.VALID] * 3 + [Quality.NOISY, Quality.THROTTLED, Quality.FALLBACK]
            ),
            kind=st.sampled_from([SampleKind.SAMPLES] * 3 + [SampleKind.SUMMARY]),
            control_level=st.sampled_from([one.control_level] * 3 + [*ControlLevel]),
        ),
        max_size=16,
        unique_by=lambda value: (value.round, value.repeat),
    )


def test_pairs_of_several_matrices_are_those_of_each(farm: FarmRig, host: HostRig) -> None:
    ids = [measured(farm, host, rounds=3, aa=True), measured(farm, host, rounds=4)]

    def inputs(connection: Connection) -> tuple[list[SpeedupInputs], list[SpeedupInputs]]:
        found = [get_matrix(connection, matrix_id) for matrix_id in ids]
        each = [
            own
            for matrix in found
            for own in comparisons_of(connection, matrix, list_cells(connection, matrix.matrix_id))
        ]
        pairs = [CellPair(matrix=own.matrix, baseline=own.baseline, candidate=own.candidate) for own in each]
        return each, compared_pairs(connection, pairs)

    each, at_once = farm.read(inputs)
    assert [len(own.duplicates) for own in at_once] == [0, 3, 0]
    assert at_once == each
    # With what the past says, nothing is paired a second time.
    pairs = at_once[0].pairs()
    assert at_once[0].with_prior(None).pairs() is pairs
