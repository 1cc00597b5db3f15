"""Planning, cancelling, rerunning and explaining, against a farm that has measured something."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest

from farm.cli.shell.main import main
from farm.core.base.ids import JobId, MatrixId
from farm.core.devices.condition import Condition
from farm.core.jobs.attempt import AttemptState
from farm.core.runs.evidence import Evidence
from farm.wire.agents.protocol import Assignment
from tests.support.farm.api_server import served_farm
from tests.support.farm.changes import recorded_change
from tests.support.farm.service_fixture import FarmRig, ended, good_evidence, phase, torch_output
from tests.support.sample_views import NOON

MATRIX = """\
name: small
harness: speed_benchmark_torch
axes:
  model: mobilenet_v2
  precision: [float32, int8-core]
  format: torchscript
  backend: cpu
exclude: [{precision: int8-core}]
devices: {device: PHONE-*}
baseline: {precision: float32}
aa: true
"""


@dataclass(frozen=True)
class Measured:
    """A finished matrix, and one of which a job is under way; cells by label."""

    done: MatrixId
    #: Without a baseline.
    times: MatrixId
    open: MatrixId
    cells: dict[str, int]
    active: JobId
    #: A regression that was found.
    change: int


def _evidence(assignment: Assignment) -> Evidence:
    evidence = good_evidence(assignment)
    if evidence.stdout.startswith("shell_exit"):
        return evidence
    evidence = ended(assignment, torch_output([1000.0] * 5), stderr="[a warning]\n")
    looks = [Condition(taken_at=NOON, skin_c=celsius, battery_level_pct=80) for celsius in (30.0, 31.5)]
    return replace(evidence, before=looks[0], after=looks[1], pushed_bytes=14_200_000, waited_s=12.0)


def _measure(folder: Path) -> Measured:
    rig = FarmRig(folder)
    rig.variant("float32")
    rig.variant("int8-core")
    host = rig.host()
    host.plug_in("phone-1")
    host.earn_health()
    done = rig.submit(aa=True)
    times = rig.submit(baseline=None, rounds=1)
    host.run(_evidence)
    opened = rig.submit()
    (assignment,) = host.exchange().assignments
    host.exchange([phase(assignment, AttemptState.MEASURING)])
    cells = {cell.label: cell.cell_id for cell in rig.matrix(done).cell_list}
    change = recorded_change(rig)
    assert change is not None
    rig.close()
    return Measured(done=done, times=times, open=opened, cells=cells, active=assignment.job_id, change=change)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Measured]:
    """The folder of a farm that has measured, and does not run; tests get copies."""
    folder = tmp_path_factory.mktemp("original")
    return folder, _measure(folder)


@pytest.fixture
def measured(
    original: tuple[Path, Measured], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Measured]:
    folder, found = original
    with served_farm(Path(copytree(folder, tmp_path / "data"))) as address:
        monkeypatch.setenv("FARM_URL", address)
        yield found


def run(*words: object) -> int:
    """The exit code of a command."""
    with pytest.raises(SystemExit) as left:
        main([str(word) for word in words])
    return int(left.value.code or 0)


def document(capsys: pytest.CaptureFixture[str], *words: object) -> Any:
    """What a command prints with --json."""
    capsys.readouterr()
    assert run(*words, "--json") == 0
    return json.loads(capsys.readouterr().out)


def test_a_matrix_is_planned_and_nothing_is_queued(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(MATRIX)
    before = document(capsys, "matrix", "list")
    assert run("matrix", "plan", file) == 0
    out = capsys.readouterr().out
    assert "small: 2 cells on 1 device x 10 rounds = 20 jobs with speed_benchmark_torch" in out
    assert "excluded: int8-core: exclude[0] leaves it out: {precision: int8-core}" in out
    assert "device time of 2 cells from runs of that harness" in out
    plan = document(capsys, "matrix", "plan", file)
    assert (plan["cells"], plan["jobs"], plan["devices"][0]["jobs_ahead"]) == (2, 20, 9)
    assert document(capsys, "matrix", "list") == before


def test_a_wrong_file_is_told_with_its_line_by_plan_too(
    measured: Measured, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "small.yaml"
    file.write_text(MATRIX.replace("baseline: {precision: float32}", "baseline: {precision: float16}"))
    assert run("matrix", "plan", file) == 2
    assert re.search(
        r"small.yaml, line 10: baseline: no cell has \{precision: float16\}", capsys.readouterr().err
    )


def test_a_speedup_names_its_cell_and_the_cell_explains_it(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("speedups", "--matrix", measured.done) == 0
    cell = measured.cells["int8-core"]
    assert f"explain cell {measured.cells['float32 (A/A)']} (float32 (A/A)) or {cell} (int8-core)" in (
        capsys.readouterr().err
    )
    assert run("explain", "cell", cell) == 0
    out = capsys.readouterr().out
    # As wide as steps of a microsecond make it.
    assert out.startswith(
        f"int8-core against float32: 1.000x, 0.999x to 1.001x, same; matrix {measured.done}"
    )
    for said in (
        "skin 30.0 °C before, 31.5 °C after; battery 80 %",
        "Student's t on the logarithms of the ratios, widened by the step of the clock",
        "A/A",
        "cpu by construction",
        "phone-1",
        "drawn for each block by seed 7",
    ):
        assert said in out
    assert len(re.findall(r"^ +[1-5]  1\.00 ms", out, re.MULTILINE)) == 5
    view = document(capsys, "explain", "cell", cell)
    assert view["speedup"]["cell_id"] == cell
    assert len(view["rounds"]) == len(view["candidate"]["runs"]) == 5


def test_a_number_is_explained_and_its_output_printed_as_it_came(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = document(capsys, "matrix", "jobs", measured.done)
    job_id, attempt_id = jobs[0]["job_id"], jobs[0]["attempts"][-1]
    assert run("explain", "job", job_id) == 0
    out = capsys.readouterr().out
    assert "value       1.00 ms, median of 5 samples" in out
    assert "waited 12 s for gates, pushed 14.2 MB" in out
    assert f"farm job logs {job_id}" in out
    assert run("job", "show", job_id) == 0
    assert "succeeded" in capsys.readouterr().out
    assert run("job", "logs", job_id) == 0
    assert capsys.readouterr().out == torch_output([1000.0] * 5)
    assert run("job", "logs", job_id, "--stderr", "--attempt", attempt_id) == 0
    assert capsys.readouterr().out == "[a warning]\n"
    assert document(capsys, "explain", "job", job_id)["job"]["attempts"] == [attempt_id]


def test_output_that_is_not_there_is_told_with_what_there_is(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    jobs = document(capsys, "matrix", "jobs", measured.open)
    waiting = next(job["job_id"] for job in jobs if job["state"] == "queued")
    assert run("job", "logs", measured.active) == 2
    assert "is measuring: no report yet" in capsys.readouterr().err
    assert run("job", "logs", waiting) == 2
    assert "has no attempt yet" in capsys.readouterr().err
    assert run("job", "logs", measured.active, "--attempt", 999) == 2
    assert "has no attempt 999" in capsys.readouterr().err
    for words in (("job", "show", 999), ("explain", "job", 999), ("explain", "cell", 999)):
        assert run(*words) == 2
        assert capsys.readouterr().err.startswith("error: there is no ")


def test_a_matrix_is_cancelled_once_and_told_so_the_second_time(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("matrix", "cancel", measured.open) == 0
    assert capsys.readouterr().err == (
        f"Matrix {measured.open} (test): 9 jobs will not start, 1 run is being stopped; 0 finished before.\n"
    )
    assert run("matrix", "cancel", measured.open) == 0
    assert "already finished: nothing to cancel" in capsys.readouterr().err
    assert document(capsys, "matrix", "show", measured.open)["state"] == "cancelled"
    assert run("matrix", "cancel", measured.done, "--device", "nope") == 2
    assert "no device `nope`" in capsys.readouterr().err


def test_jobs_that_a_person_ended_are_told_as_such(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("matrix", "cancel", measured.open) == 0
    assert run("matrix", "show", measured.open) == 0
    printed = capsys.readouterr()
    assert "5 cancelled (cancelled: by a person)" in printed.out
    assert f"matrix jobs {measured.open}" in printed.err


def test_a_matrix_without_a_baseline_is_watched_to_its_times(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("matrix", "watch", measured.times) == 0
    printed = capsys.readouterr()
    assert re.search(r"^phone-1 +float32 +1\.00 ms", printed.out, re.MULTILINE)
    assert "no interval and no verdict" in printed.err
    assert "Nothing to compare" not in printed.err


def test_a_matrix_is_run_again_and_says_of_which_it_is_a_rerun(
    measured: Measured, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("matrix", "rerun", measured.done, "--failed") == 2
    assert "has a valid measurement in each round" in capsys.readouterr().err
    again = document(capsys, "matrix", "rerun", measured.done)
    assert (again["rerun_of"], again["jobs"]) == (measured.done, 15)
    failed = document(capsys, "matrix", "rerun", measured.open, "--failed")
    assert failed["jobs"] == 10
    assert run("matrix", "list") == 0
    # The cell may be folded over several lines.
    assert f"a rerun of matrix {measured.done}" in " ".join(capsys.readouterr().out.split())
