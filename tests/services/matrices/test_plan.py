"""What a plan says is what a submission then does, and nothing is queued by it."""

from typing import Any

import pytest

from farm.core.errors import MatrixInvalid
from farm.core.matrices.estimate import EstimateBasis
from farm.core.matrices.matrix import RejectionKind
from farm.services.matrices.plan import plan_matrix
from farm.wire.agents.protocol import Assignment
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.documents.matrices.plans import MatrixPlanView
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

pytestmark = pytest.mark.usefixtures("both_variants")

AXES = {
    "model": "mobilenet_v2",
    "precision": ["float32", "int8-core"],
    "format": "torchscript",
    "backend": "cpu",
}


@pytest.fixture
def host(farm: FarmRig) -> HostRig:
    host = farm.host()
    host.plug_in("phone-1")
    host.plug_in("phone-2", device_model="another phone", api_level=28)
    host.earn_health()
    return host


def plan(farm: FarmRig, **changes: Any) -> MatrixPlanView:
    spec = {
        "name": "test",
        "harness": "speed_benchmark_torch",
        "axes": AXES,
        "settings": {"iter": 5},
        "devices": {"virtual": True},
        "baseline": {"precision": "float32"},
        "timeout_s": 60,
        "rounds": 5,
        **changes,
    }
    return farm.read(plan_matrix, matrix_spec(spec))


def run_for(farm: FarmRig, host: HostRig, seconds: float, **changes: Any) -> None:
    """A matrix on one phone, every run of which takes so long."""

    def slow(assignment: Assignment) -> Any:
        farm.clock.advance(seconds - 1)
        return good_evidence(assignment)

    farm.submit(devices={"device_id": "phone-1"}, **changes)
    host.run(slow)


def test_a_plan_counts_what_a_submission_queues_and_queues_nothing(farm: FarmRig, host: HostRig) -> None:
    before = farm.rows("SELECT count(*) n FROM events")
    view = plan(farm, aa=True)
    assert farm.rows("SELECT count(*) n FROM events") == before
    assert farm.rows("SELECT * FROM jobs WHERE matrix_id IS NOT NULL") == []
    assert (view.cells, view.jobs) == (6, 30)
    matrix_id = farm.submit(aa=True)
    submitted = farm.matrix(matrix_id)
    assert (submitted.cells, submitted.jobs) == (view.cells, view.jobs)
    assert [(cell.device_id, cell.label, cell.baseline) for cell in submitted.cell_list] == [
        (cell.device_id, cell.label, cell.baseline) for cell in view.cell_list
    ]


def test_without_history_the_time_out_is_the_upper_bound(farm: FarmRig, host: HostRig) -> None:
    view = plan(farm)
    assert view.is_upper_bound
    assert {cell.basis for cell in view.cell_list} == {EstimateBasis.TIMEOUT}
    assert [device.device_s for device in view.devices] == [2 * 5 * 60.0] * 2
    assert view.device_s == 2 * view.wall_s == 1200.0


def test_the_history_of_the_series_is_taken_first_then_the_device_model_then_the_harness(
    farm: FarmRig, host: HostRig
) -> None:
    run_for(farm, host, 10.0)
    host.plug_in("phone-3")
    host.run()
    by_device = {device.device_id: device for device in plan(farm).devices}
    assert by_device["phone-1"].cells_by_basis == {EstimateBasis.SERIES: 2}
    assert by_device["phone-3"].cells_by_basis == {EstimateBasis.DEVICE_MODEL: 2}
    assert by_device["phone-2"].cells_by_basis == {EstimateBasis.HARNESS: 2}
    assert [device.device_s for device in by_device.values()] == [100.0, 100.0, 100.0]
    longer = plan(farm, settings={"iter": 500}, devices={"device_id": "phone-1"})
    assert longer.devices[0].cells_by_basis == {EstimateBasis.HARNESS: 2}
    assert not longer.is_upper_bound


def test_phones_that_share_a_cpu_take_turns_on_the_clock(farm: FarmRig, host: HostRig) -> None:
    for name in ("phone-1", "phone-2"):
        host.plug_in(name, cpu_domain="cpu-1")
    host.exchange()
    view = plan(farm)
    assert view.wall_s == view.device_s == 1200.0


def test_devices_that_no_selector_fits_are_listed_with_the_key_they_fail(
    farm: FarmRig, host: HostRig
) -> None:
    view = plan(farm, devices={"api_level": ">=30"})
    assert [device.device_id for device in view.devices] == ["phone-1"]
    assert [(device.device_id, device.reason) for device in view.left_out] == [
        ("phone-2", "its api_level is 28")
    ]


def test_what_cannot_run_is_grouped_by_its_reason(farm: FarmRig, host: HostRig) -> None:
    axes = {**AXES, "format": ["torchscript", "lite"], "backend": ["cpu"]}
    view = plan(farm, axes=axes, exclude=[{"precision": "int8-core", "format": "lite"}])
    groups = {group.rejection: group for group in view.rejected}
    assert groups[RejectionKind.EXCLUDED].labels == ("int8-core lite",)
    assert groups[RejectionKind.NO_VARIANT].labels == ("float32 lite",)
    assert "farm variant build" in groups[RejectionKind.NO_VARIANT].hint
    assert all(group.device_ids == () for group in view.rejected)


def test_a_phone_without_a_program_is_told_as_one_reason(farm: FarmRig, host: HostRig) -> None:
    host.plug_in("phone-2", abis=("riscv64",))
    host.exchange()
    (group,) = plan(farm).rejected
    assert (group.rejection, group.device_ids) == (RejectionKind.NO_PROGRAM, ("phone-2",))
    assert group.labels == ("float32", "int8-core")


def test_a_plan_says_which_kind_of_baseline_it_has_and_what_it_leaves_alone(
    farm: FarmRig, host: HostRig
) -> None:
    assert plan(farm).baseline_kind == "absolute"
    assert plan(farm, baseline=None).baseline_kind is None
    farm.variant("int8-core", "lite")
    farm.variant("float32", "lite")
    axes = {**AXES, "format": ["torchscript", "lite"]}
    relative = plan(farm, axes=axes, exclude=[{"precision": "float32", "format": "lite"}])
    assert (relative.baseline_kind, relative.uncompared) == ("relative", ("int8-core lite",))


def test_jobs_of_others_that_go_first_are_counted(farm: FarmRig, host: HostRig) -> None:
    farm.submit(devices={"device_id": "phone-2"})
    view = plan(farm)
    assert [device.jobs_ahead for device in view.devices] == [0, 10]
    assert [device.jobs_ahead for device in plan(farm, priority=5).devices] == [0, 0]


def test_a_plan_of_a_wrong_matrix_is_refused_like_its_submission(farm: FarmRig, host: HostRig) -> None:
    with pytest.raises(MatrixInvalid, match="no precision"):
        plan(farm, axes={**AXES, "precision": "Float32"})
