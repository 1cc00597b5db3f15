"""`farm regressions`: from a kernel that doubles between two matrices to the judgement of a person."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from farm.core.runs.evidence import Evidence
from farm.services.results.history.change_sweep import ChangeSweep
from farm.wire.agents.protocol import Assignment
from tests.cli.matrices.test_matrix import document, run
from tests.services.matrices.test_controls import BOUND, COOL
from tests.services.results.history.test_latest_speedups import ONE_PHONE, Unsteady, measured
from tests.support.farm.api_server import served_farm
from tests.support.farm.changes import recorded_change
from tests.support.farm.copied_sessions import another_file
from tests.support.farm.points import compute_points
from tests.support.farm.service_fixture import FarmRig


class ReadBack(Unsteady):
    """Runs that were bound to cores, which the phone reports, or does not."""

    def __init__(self, farm: FarmRig, cores: str | None, *, slower: float) -> None:
        super().__init__(farm, slower=slower)
        self.bound = replace(BOUND, actual_before=cores, actual_after=cores)

    def __call__(self, assignment: Assignment) -> Evidence:
        return replace(super().__call__(assignment), before=COOL, after=COOL, controls=(self.bound,))


OLD, NEW = "a" * 64, "b" * 64


def farm_rig(folder: Path) -> FarmRig:
    rig = FarmRig(folder)
    rig.variant("float32")
    rig.variant("int8-core")
    return rig


@pytest.fixture
def change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The number of the one regression of a farm that is served."""
    rig = farm_rig(tmp_path)
    host = rig.host()
    host.plug_in("phone-1")
    host.earn_health()
    measured(rig, host, rounds=2)
    compute_points(rig)
    found = recorded_change(rig)
    assert found is not None
    recorded_change(rig, delta=-0.05)
    rig.close()
    with served_farm(tmp_path) as address:
        monkeypatch.setenv("FARM_URL", address)
        monkeypatch.setenv("COLUMNS", "80")
        yield found


@pytest.mark.long
def test_a_kernel_that_doubles_between_two_matrices_is_named_with_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rig = farm_rig(tmp_path)
    host = rig.host()
    host.plug_in("phone-1")
    host.earn_health()
    measured(rig, host, rounds=5)
    another_file(rig)
    measured(rig, host, rounds=5, slower=2.0)
    compute_points(rig)
    old, new = (
        str(row["digest"])
        for row in rig.rows("SELECT digest FROM variants WHERE name LIKE '%int8%' ORDER BY variant_id")
    )
    ChangeSweep(rig.database, rig.clock)()
    rig.close()
    with served_farm(tmp_path) as address:
        monkeypatch.setenv("FARM_URL", address)
        (found,) = document(capsys, "regressions")
        assert (found["cause"], found["versions"]) == ("file", [{"part": "file", "old": old, "new": new}])
        assert found["ratio_low"] < 2.0 < found["ratio_high"]
        assert found["ratio_low"] > 1.5
        assert run("regressions") == 0
        assert f"file {old[:8]} → {new[:8]}" in capsys.readouterr().out
        (alarm,) = document(capsys, "alarms")
        assert f"file {old[:8]} → {new[:8]}" in alarm["message"]


@pytest.mark.long
def test_a_control_level_that_changes_between_two_matrices_is_the_cause_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The same file and program; the cores of the phone can be read back from the third matrix on."""
    rig = farm_rig(tmp_path)
    host = rig.host()
    host.plug_in("phone-1")
    host.earn_health()
    for cores, slower in [(None, 1.0), (None, 1.0), ("0-1", 2.0), ("0-1", 2.0)]:
        rig.submit(devices=ONE_PHONE, rounds=5, controls={"cores": "0-1"})
        host.run(ReadBack(rig, cores, slower=slower))
        compute_points(rig)
        ChangeSweep(rig.database, rig.clock)()
    assert len(rig.rows("SELECT DISTINCT variant_digest FROM measurements")) == 2
    assert len(rig.rows("SELECT DISTINCT program_digest FROM measurements")) == 1
    rig.close()
    with served_farm(tmp_path) as address:
        monkeypatch.setenv("FARM_URL", address)
        (found,) = document(capsys, "regressions", "--all")
        assert (found["cause"], found["found_cause"], found["gone_at"]) == ("method", "method", None)
        assert found["versions"] == [{"part": "controls", "old": "free", "new": "pinned"}]
        assert found["ratio_low"] < 2.0 < found["ratio_high"]
        assert run("regressions") == 0
        assert "method" in (listed := capsys.readouterr().out)
        assert "controls free → pinned" in " ".join(listed.split())
        (own,) = document(capsys, "regressions", "show", 1)["evidence"]
        assert (own["before_matrix_id"], own["after_matrix_ids"]) == (2, [3, 4])
        (alarm,) = document(capsys, "alarms", "--all")
        assert "controls free → pinned" in alarm["message"]


def test_a_list_fits_eighty_columns_and_has_what_is_slower(
    change: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("regressions") == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[0].split() == ["change", "time", "since", "devices", "cause", "state"]
    assert lines[1].split()[:5] == ["1", "+5.1", "%", "(+4.3", "to"]
    assert lines[1].endswith("1 of 2   file   new")
    assert lines[2].strip() == "mobilenet_v2 int8-core on phone-1, file aaaaaaaa → bbbbbbbb"
    assert len(lines) == 3
    assert len(document(capsys, "regressions", "--all")) == 2
    assert document(capsys, "regressions", "--since", "1h", "--device", "phone-1", "--cause", "os") == []
    assert len(document(capsys, "regressions", "--name", "TEST")) == 1
    assert document(capsys, "regressions", "--name", "nightly") == []
    assert document(capsys, "regressions", "--mine") == []
    assert run("regressions", "--state", "fixed") == 0
    assert capsys.readouterr().err == "No regression matches.\n"


def test_the_evidence_has_the_sessions_of_each_series(
    change: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("regressions", "show", change) == 0
    printed = capsys.readouterr()
    assert {OLD, NEW} <= set(printed.out.split())
    assert "1 of 2 show it" in printed.out
    assert "int8-core vs float32" in printed.out
    assert "farm history show mobilenet_v2 --device phone-1" in printed.err


def test_a_person_says_what_a_change_is_for_a_reason_that_is_kept(
    change: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("regressions", "set", change, "expected", "--reason", "float16 is off on purpose") == 0
    assert capsys.readouterr().err == f"Change {change} is expected.\n"
    detail = document(capsys, "regressions", "show", change)
    (decision,) = detail["decisions"]
    assert (decision["state"], decision["reason"]) == ("expected", "float16 is off on purpose")
    assert document(capsys, "alarms") == []


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("show", 99), 2, "there is no change 99"),
        (("set", 99, "fixed", "--reason", "r"), 2, "there is no change 99"),
        (("set", 1, "fixed"), 2, "needs a reason"),
        (("set", 1, "boring", "--reason", "r"), 2, "boring"),
        (("--since", "2999-01-01"), 2, "lies in the future"),
        (("--model", "other"), 2, "no model `other`"),
        (("--device", "other"), 2, "other"),
        (("--cause", "weather"), 2, "weather"),
    ],
)
def test_bad_input_is_refused_with_a_hint(
    change: int, words: tuple[object, ...], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("regressions", *words) == code
    error = capsys.readouterr().err
    assert message in error
