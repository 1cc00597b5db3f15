"""A matrix run again: the same spec over what the farm has now, or what failed with its comparisons."""

from typing import Any

import pytest

from farm.core.base.ids import MatrixId
from farm.core.errors import Conflict, SelectorEmpty
from farm.database.transaction import bind_tx
from farm.services.devices.admin import retire
from farm.services.matrices.lazy_expansion import expand_small
from farm.services.matrices.rerun import prepare_rerun
from farm.services.matrices.submit import store_if_unchanged
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.devices import OperatorRequest
from tests.support.farm.direct_calls import cancel_matrix, rerun_matrix
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence, plan_of

AXES = {
    "model": "mobilenet_v2",
    "precision": ["float32", "int8-core"],
    "format": ["torchscript", "lite"],
    "backend": "cpu",
}


@pytest.fixture
def farm(farm: FarmRig) -> FarmRig:
    """With every cell of the axes."""
    for precision in ("float32", "int8-core"):
        for format in ("torchscript", "lite"):
            farm.variant(precision, format)
    return farm


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    return farm.healthy_host("phone-1")


class Crashing:
    """Runs of which those of one variant crash."""

    def __init__(self, farm: FarmRig, variant: str) -> None:
        (row,) = farm.rows("SELECT digest FROM variants WHERE name = :name", name=f"mobilenet_v2/{variant}")
        self.digest = row["digest"]

    def __call__(self, assignment: Assignment) -> Any:
        plan = plan_of(assignment)
        if plan.harness != "device_check" and plan.file("model").digest == self.digest:
            return ended(assignment, "", code=134, stderr="terminate called")
        return good_evidence(assignment)


def run_with_crashes(farm: FarmRig, host: HostRig, variant: str) -> MatrixId:
    matrix_id = farm.submit(axes=AXES, aa=True, rounds=2)
    host.run(Crashing(farm, variant))
    return matrix_id


def rerun(farm: FarmRig, matrix_id: MatrixId, *, failed: bool = False) -> MatrixId:
    return farm.write(bind_tx(rerun_matrix, now=farm.clock.now(), actor="user"), matrix_id, failed=failed)


def test_a_rerun_that_was_prepared_over_other_phones_is_made_again(farm: FarmRig, host: HostRig) -> None:
    matrix_id = run_with_crashes(farm, host, "int8-core/lite")
    ready = farm.read(prepare_rerun, matrix_id, failed=False)
    host.plug_in("phone-9")
    host.exchange()
    now = farm.clock.now()
    assert farm.write(bind_tx(store_if_unchanged, now=now, actor="user"), ready, rerun_of=matrix_id) is None
    ready = farm.read(prepare_rerun, matrix_id, failed=False)
    again = farm.write(bind_tx(store_if_unchanged, now=now, actor="user"), ready, rerun_of=matrix_id)
    farm.write(bind_tx(expand_small, now=now), again)
    phones = farm.rows("SELECT DISTINCT device_id FROM cells WHERE matrix_id = :matrix", matrix=again)
    assert "phone-9" in {row["device_id"] for row in phones}
    assert farm.rows("SELECT rerun_of FROM matrices WHERE matrix_id = :m", m=again) == [
        {"rerun_of": matrix_id}
    ]


def labels(farm: FarmRig, matrix_id: MatrixId) -> list[tuple[str, str | None]]:
    return [(cell.label, cell.baseline) for cell in farm.matrix(matrix_id).cell_list]


def test_a_rerun_is_a_new_matrix_of_the_same_spec_on_the_devices_that_fit_now(
    farm: FarmRig, host: HostRig
) -> None:
    first = farm.submit()
    host.run()
    host.plug_in("phone-2")
    host.earn_health()
    again = farm.matrix(rerun(farm, first))
    assert again.rerun_of == first
    assert (again.name, again.rounds) == ("test", 5)
    assert [progress.device_id for progress in again.progress] == ["phone-1", "phone-2"]


def test_only_failed_cells_run_again_with_their_baseline_and_its_duplicate(
    farm: FarmRig, host: HostRig
) -> None:
    first = run_with_crashes(farm, host, "int8-core/lite")
    assert labels(farm, rerun(farm, first, failed=True)) == [
        ("float32 lite", None),
        ("float32 lite (A/A)", "float32 lite"),
        ("int8-core lite", "float32 lite"),
    ]


def test_a_failed_baseline_runs_again_with_all_that_is_compared_to_it(farm: FarmRig, host: HostRig) -> None:
    first = run_with_crashes(farm, host, "float32/torchscript")
    assert [label for label, _ in labels(farm, rerun(farm, first, failed=True))] == [
        "float32 torchscript",
        "float32 torchscript (A/A)",
        "int8-core torchscript",
    ]


def test_a_rerun_of_what_failed_finishes_and_compares(farm: FarmRig, host: HostRig) -> None:
    first = run_with_crashes(farm, host, "int8-core/lite")
    again = rerun(farm, first, failed=True)
    assert host.run() == 6
    assert [view.rounds for view in farm.speedups(again)] == [2, 2]


def test_cells_that_were_cancelled_have_failed_too(farm: FarmRig, host: HostRig) -> None:
    first = farm.submit()
    host.run(limit=1000)
    second = farm.submit()
    farm.write(bind_tx(cancel_matrix, now=farm.clock.now(), actor="user"), second)
    assert len(labels(farm, rerun(farm, second, failed=True))) == 2
    with pytest.raises(Conflict, match=f"every cell of matrix {first} has a valid measurement"):
        rerun(farm, first, failed=True)


def test_a_rerun_whose_devices_are_gone_is_refused(farm: FarmRig, host: HostRig) -> None:
    first = farm.submit()
    farm.write(bind_tx(retire, now=farm.clock.now()), "phone-1", OperatorRequest(by="kim"))
    with pytest.raises(SelectorEmpty):
        rerun(farm, first)
