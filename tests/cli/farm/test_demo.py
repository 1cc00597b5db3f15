"""The parts of the demo and of `farm up` that can be tried without a farm."""

import subprocess
import sys
from pathlib import Path

import pytest
import typer

from farm.cli.farm.demo import demo_lock, is_ready, log_tail, stop_process, waiting_text
from farm.cli.farm.up import shutdown_message
from farm.cli.matrices.matrix import exit_code_of, follow
from farm.cli.shell.next_steps import demo_commands, demo_detach_text, farm_commands, watch_again_text
from farm.client.farm_client import FarmClient
from farm.core.base.ids import MatrixId
from farm.core.errors import InvalidInput
from farm.wire.documents.matrices.matrices import MatrixView
from tests.support.sample_views import device_view, matrix_view

#: Says that it is up, then ends tidily at SIGINT, or only when it is killed.
TIDY = (
    "import signal; signal.signal(signal.SIGINT, lambda *_: exit(0)); print('up', flush=True); signal.pause()"
)


def test_a_phone_is_ready_when_it_is_online_good_and_active_even_while_busy() -> None:
    assert is_ready(device_view(job_id=7, waiting_for=("the device is busy with another job",)))
    assert not is_ready(device_view(presence="offline"))
    assert not is_ready(device_view(blocked_by=("session_not_live",)))
    assert not is_ready(device_view(health="unknown"))
    assert not is_ready(device_view(admin="cordoned"))


def test_what_phones_wait_for_names_each_with_its_first_reason() -> None:
    unchecked = device_view(device_id="v-1", health="unknown", waiting_for=("not checked yet", "busy"))
    assert waiting_text([device_view(), unchecked]) == "v-1: not checked yet"
    assert waiting_text([]) == "none has connected yet"


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ({"succeeded": 50}, 0),
        ({"succeeded": 49, "unsupported": 1}, 0),
        ({"succeeded": 49, "failed": 1}, 3),
        ({"succeeded": 49, "inconclusive": 1}, 4),
        ({"failed": 1, "expired": 1}, 3),
    ],
)
def test_a_watched_matrix_ends_with_the_code_of_what_went_wrong(outcomes: dict[str, int], code: int) -> None:
    assert exit_code_of(matrix_view(jobs_by_outcome=outcomes)) == code


@pytest.mark.parametrize(("kind", "code"), [("no_variant", 2), ("expired", 2), ("excluded", 0)])
def test_a_matrix_that_wants_a_file_does_not_end_with_0(kind: str, code: int) -> None:
    cell = {
        "device_id": None,
        "device_label": None,
        "label": "int8-core",
        "kind": kind,
        "reason": "not registered",
    }
    view = matrix_view(jobs_by_outcome={"succeeded": 50}, rejected_list=[cell])
    assert exit_code_of(view) == code
    assert exit_code_of(view, allow_missing=True) == 0


def test_a_child_that_listens_to_sigint_ends_tidily() -> None:
    child = subprocess.Popen([sys.executable, "-c", TIDY], stdout=subprocess.PIPE)
    assert child.stdout is not None
    with child.stdout:
        child.stdout.readline()
        stop_process(child)
    assert child.returncode == 0


def test_a_child_that_has_ended_already_is_no_trouble() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    stop_process(child)
    assert child.returncode == 0


def test_the_end_of_a_log_comes_with_where_the_log_is(tmp_path: Path) -> None:
    log = tmp_path / "farm-up.log"
    log.write_text("".join(f"line {number}\n" for number in range(100)))
    said = log_tail(log)
    assert said.startswith(f"the end of {log}:")
    assert said.endswith("line 99")
    assert "line 50" not in said


def test_next_steps_name_another_data_folder_only_when_it_is_needed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FARM_DATA_DIR", str(tmp_path))
    assert "FARM_DATA_DIR" not in farm_commands(tmp_path)
    assert f"export FARM_DATA_DIR={tmp_path / 'other'}" in farm_commands(tmp_path / "other")


def test_after_the_demo_a_farm_is_started_again_unless_it_goes_on(tmp_path: Path) -> None:
    assert "up --virtual 2" in demo_commands(tmp_path, MatrixId(3), keeps_farm_running=False)
    goes_on = demo_commands(tmp_path, MatrixId(3), keeps_farm_running=True)
    assert "up --virtual" not in goes_on
    assert "matrix show 3" in goes_on


def test_a_farm_that_stops_says_which_runs_go_on_without_it() -> None:
    assert shutdown_message([]) == "The farm has stopped."
    one = "The farm has stopped. 1 run continues on v-1; the next `farm up` resumes it."
    assert shutdown_message(["v-1"]) == one
    assert "2 runs continue on v-1, v-2; the next `farm up` resumes them" in shutdown_message(["v-1", "v-2"])


def test_who_leaves_a_demo_hears_that_its_farm_stops_and_what_resumes_it(tmp_path: Path) -> None:
    said = demo_detach_text(tmp_path, MatrixId(3), keeps_farm_running=False)
    assert said.startswith("Stopping the demo's farm and matrix 3.")
    assert "Detached" not in said
    commands = [line.split("#")[0].strip() for line in said.splitlines()[1:]]
    assert commands[0] == f"export FARM_DATA_DIR={tmp_path}"
    assert commands[1].endswith("farm up --virtual 2")
    assert commands[2].endswith("farm matrix watch 3")


def test_who_leaves_a_demo_on_a_farm_that_ran_before_hears_that_the_matrix_goes_on(tmp_path: Path) -> None:
    assert demo_detach_text(tmp_path, MatrixId(3), keeps_farm_running=True) == watch_again_text(MatrixId(3))
    assert "farm matrix watch 3" in watch_again_text(MatrixId(3))


#: Says that it has its turn, then has it until its input ends.
HAS_TURN = """
import sys
from pathlib import Path
from farm.cli.farm.demo import demo_lock
with demo_lock(Path(sys.argv[1]), lambda said: print(said, flush=True)):
    print("its turn", flush=True)
    sys.stdin.read()
"""


@pytest.mark.long
def test_a_second_demo_of_a_folder_says_that_it_waits_and_begins_when_the_first_has_ended(
    tmp_path: Path,
) -> None:
    said: list[str] = []
    with demo_lock(tmp_path / "new", said.append):
        second = subprocess.Popen(
            [sys.executable, "-c", HAS_TURN, str(tmp_path / "new")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert second.stdout is not None
        assert f"Another demo is running in {tmp_path / 'new'}" in second.stdout.readline()
    assert second.stdout.readline() == "its turn\n"
    assert second.communicate(timeout=60)[0] == ""
    assert second.returncode == 0
    assert said == []


def test_demos_of_two_folders_do_not_wait_for_each_other(tmp_path: Path) -> None:
    said: list[str] = []
    with demo_lock(tmp_path / "one", said.append), demo_lock(tmp_path / "other", said.append):
        assert said == []


def test_a_demo_in_a_folder_that_cannot_be_made_is_refused_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    refused = pytest.raises(InvalidInput, match=f"{tmp_path}/file/farm cannot be used: Not a directory")
    with refused, demo_lock(tmp_path / "file" / "farm", print):
        pytest.fail("it began")


class LeftFarm(FarmClient):
    """A farm at which Ctrl-C is pressed."""

    def matrix(self, matrix_id: MatrixId) -> MatrixView:
        raise KeyboardInterrupt


def test_ctrl_c_says_what_the_caller_wants_said_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    with LeftFarm("http://127.0.0.1:9") as farm, pytest.raises(typer.Exit) as left:
        follow(farm, MatrixId(3), leaving="what becomes of it")
    assert left.value.exit_code == 130
    assert capsys.readouterr().err == "what becomes of it\n"
