"""Backends whose placement nothing shows: measured, kept, marked, and out of every speedup."""

import pytest

from farm.core.base.ids import MatrixId
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence

NO_NNAPI = (
    "terminate called after throwing an instance of 'c10::Error'\n"
    "  what():  [enforce fail at nnapi_wrapper.cpp:344] handle. Failed to load libneuralnetworks.so"
)

#: Before the message of a round that was not run any more.
NOT_RUN = "not run, because two starts ended so: "


@pytest.fixture
def matrix(farm: FarmRig, host: HostRig) -> MatrixId:
    """The cpu file on the cpu, and the file that was converted for NNAPI on NNAPI."""
    farm.variant("float32", target="nnapi")
    return farm.submit(
        axes={
            "model": "mobilenet_v2",
            "precision": "float32",
            "format": "torchscript",
            "backend": ["cpu", "nnapi"],
            "target": ["cpu", "nnapi"],
        },
        baseline={"backend": "cpu", "target": "cpu"},
    )


def without_nnapi(assignment: Assignment) -> Evidence:
    plan = assignment.plan
    if plan is None or plan.backend != "nnapi":
        return good_evidence(assignment)
    return ended(assignment, "Main runs.\n", code=134, stderr=NO_NNAPI)


def outcomes(farm: FarmRig) -> set[tuple[str, str, str]]:
    """Backend, outcome and quality of every benchmark job."""
    rows = farm.rows(
        "SELECT c.backend, j.outcome, coalesce(m.quality, '-') AS quality FROM jobs j"
        " JOIN cells c ON c.cell_id = j.cell_id"
        " LEFT JOIN measurements m ON m.job_id = j.job_id AND m.accepted"
    )
    return {(row["backend"], row["outcome"], row["quality"]) for row in rows}


def test_only_files_and_backends_that_go_together_are_run(farm: FarmRig, matrix: MatrixId) -> None:
    cells = {(cell.backend, cell.variant) for cell in farm.matrix(matrix).cell_list}
    assert cells == {
        ("cpu", "mobilenet_v2/float32/torchscript"),
        ("nnapi", "mobilenet_v2/float32/torchscript/nnapi"),
    }


def test_an_nnapi_run_is_kept_as_unproven_and_makes_no_speedup(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run()
    assert outcomes(farm) == {("cpu", "succeeded", "valid"), ("nnapi", "succeeded", "unproven")}
    for speedup in farm.speedups(matrix):
        assert speedup.speedup is None


def test_a_phone_without_nnapi_is_unsupported_and_says_why(
    farm: FarmRig, host: HostRig, matrix: MatrixId
) -> None:
    host.run(without_nnapi)
    assert outcomes(farm) == {("cpu", "succeeded", "valid"), ("nnapi", "unsupported", "-")}
    messages = {row["message"] for row in farm.rows("SELECT message FROM jobs WHERE message IS NOT NULL")}
    [failure] = {str(message).removeprefix(NOT_RUN) for message in messages}
    assert "found no NNAPI on the device" in failure
