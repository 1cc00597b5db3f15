"""A submission that is sent again under its key makes no second matrix, whatever happens to its answers."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from farm.core.base.ids import IdempotencyKey, MatrixId, idempotency_key
from farm.core.errors import IdempotencyKeyReused
from farm.database.transaction import bind_tx
from farm.services.matrices.lazy_expansion import expand_small
from farm.services.matrices.rerun import prepare_rerun
from farm.services.matrices.submit import (
    PreparedMatrix,
    find_submitted_matrix,
    prepare_matrix,
    store_if_unchanged,
)
from farm.wire.documents.matrices.matrix import matrix_spec
from tests.support.farm.service_fixture import FarmRig

ANN, BOB = "user:ann", "user:bob"
SPEC: dict[str, Any] = {
    "name": "once",
    "harness": "speed_benchmark_torch",
    "axes": {"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"},
    "devices": {"virtual": True},
    "seed": 7,
}


@pytest.fixture
def farm(farm: FarmRig) -> FarmRig:
    """With something to measure, and a phone."""
    farm.variant("float32")
    host = farm.host()
    host.plug_in("phone-1")
    host.earn_health()
    return farm


def ready(farm: FarmRig, spec: dict[str, Any]) -> PreparedMatrix:
    return farm.read(prepare_matrix, matrix_spec(spec))


def asked(spec: dict[str, Any], key: str = "k-1") -> IdempotencyKey | None:
    return idempotency_key(key, "matrices", spec)


def submit(
    farm: FarmRig, spec: dict[str, Any] = SPEC, *, key: str | None = "k-1", actor: str = ANN
) -> MatrixId:
    request = None if key is None else asked(spec, key)
    now = farm.clock.now()
    matrix_id = farm.write(
        bind_tx(store_if_unchanged, now=now, actor=actor), ready(farm, spec), idempotency=request
    )
    assert matrix_id is not None
    farm.write(bind_tx(expand_small, now=now), matrix_id)
    return matrix_id


def counts(farm: FarmRig) -> tuple[int, int, int]:
    """Matrices, their jobs, and the events of their submission."""
    (row,) = farm.rows(
        "SELECT (SELECT count(*) FROM matrices) AS matrices, (SELECT count(*) FROM jobs WHERE matrix_id"
        " IS NOT NULL) AS jobs, (SELECT count(*) FROM events WHERE kind = 'matrix_submitted') AS told"
    )
    return row["matrices"], row["jobs"], row["told"]


@pytest.mark.invariant("I17")
@pytest.mark.fault(55)
def test_the_same_submission_under_the_same_key_is_one_matrix_with_one_event(farm: FarmRig) -> None:
    first = submit(farm)
    before = counts(farm)
    assert submit(farm) == first
    assert counts(farm) == before
    assert before[0] == before[2] == 1


def test_another_submission_under_the_same_key_is_refused(farm: FarmRig) -> None:
    first = submit(farm)
    with pytest.raises(IdempotencyKeyReused, match=f"matrix {first},"):
        submit(farm, {**SPEC, "seed": 8})
    assert counts(farm)[0] == 1


def test_keys_are_each_persons_own(farm: FarmRig) -> None:
    assert submit(farm) != submit(farm, actor=BOB)


@pytest.mark.parametrize("keys", [("k-1", "k-2"), (None, None)])
def test_another_key_or_none_is_another_submission(farm: FarmRig, keys: tuple[str | None, ...]) -> None:
    assert len({submit(farm, key=key) for key in keys}) == 2


@pytest.mark.invariant("I17")
@pytest.mark.fault(55)
def test_of_many_that_come_at_once_under_one_key_one_is_stored(farm: FarmRig) -> None:
    made = ready(farm, SPEC)
    with ThreadPoolExecutor(max_workers=8) as threads:
        answers = [
            threads.submit(
                farm.write,
                bind_tx(store_if_unchanged, now=farm.clock.now(), actor=ANN),
                made,
                idempotency=asked(SPEC),
            )
            for _ in range(8)
        ]
    found = {answer.result() for answer in answers}
    assert len(found) == 1
    assert found != {None}
    assert counts(farm)[0] == counts(farm)[2] == 1


def test_what_was_answered_is_found_though_it_could_not_be_submitted_any_more(farm: FarmRig) -> None:
    first = submit(farm)
    assert farm.read(find_submitted_matrix, asked(SPEC), actor=ANN) == first
    assert farm.read(find_submitted_matrix, asked(SPEC), actor=BOB) is None
    assert farm.read(find_submitted_matrix, None, actor=ANN) is None


@pytest.mark.fault(55)
def test_a_rerun_under_one_key_is_one_matrix(farm: FarmRig) -> None:
    whose = submit(farm, key=None)
    again = farm.read(prepare_rerun, whose, failed=False)
    request = idempotency_key("k-1", f"matrices/{whose}/rerun", {"failed": False})
    made = {
        farm.write(
            bind_tx(store_if_unchanged, now=farm.clock.now(), actor=ANN),
            again,
            rerun_of=whose,
            idempotency=request,
        )
        for _ in range(2)
    }
    assert len(made) == 1
    assert made != {None}
    assert counts(farm)[0] == counts(farm)[2] == 2
