"""A cell that fails twice in the same way is not run in its other rounds."""

from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment
from tests.support.farm.service_fixture import FarmRig, HostRig, ended, good_evidence

ONE_DEVICE = {"device_id": "phone-1"}


def run_all(farm: FarmRig, host: HostRig, codes: list[int]) -> list[dict[str, object]]:
    """Run a matrix of one cell and five rounds, whose runs end with these exit codes, and return its jobs."""
    axes = {"model": "mobilenet_v2", "precision": "float32", "format": "torchscript", "backend": "cpu"}
    host.earn_health()
    farm.submit(rounds=5, devices=ONE_DEVICE, axes=axes, baseline=None)
    left = list(codes)

    def answer(assignment: Assignment) -> Evidence:
        code = left.pop(0) if left else 0
        return ended(assignment, "it broke\n", code=code) if code else good_evidence(assignment)

    host.run(answer)
    return farm.rows("SELECT outcome, code, message FROM jobs WHERE matrix_id IS NOT NULL ORDER BY job_id")


def attempts_at_matrices(farm: FarmRig) -> int:
    query = "SELECT fence FROM attempts JOIN jobs USING (job_id) WHERE matrix_id IS NOT NULL"
    return len(farm.rows(query))


def test_after_two_equal_failures_the_other_rounds_are_not_run(farm: FarmRig, host: HostRig) -> None:
    jobs = run_all(farm, host, [1, 1, 1, 1, 1])
    assert attempts_at_matrices(farm) == 2
    assert {(job["outcome"], job["code"]) for job in jobs} == {("failed", "run.failed")}
    said = [str(job["message"]) for job in jobs]
    assert sum(message.startswith("not run, because two starts ended so: ") for message in said) == 3


def test_two_failures_of_different_kinds_stop_nothing(farm: FarmRig, host: HostRig) -> None:
    # 139 is a crash by signal 11.
    jobs = run_all(farm, host, [1, 139])
    assert attempts_at_matrices(farm) == 5
    assert [job["outcome"] for job in jobs].count("succeeded") == 3


def test_one_failure_stops_nothing(farm: FarmRig, host: HostRig) -> None:
    jobs = run_all(farm, host, [1])
    assert [job["outcome"] for job in jobs].count("succeeded") == 4
