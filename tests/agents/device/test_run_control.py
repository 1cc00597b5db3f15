import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.device.run.run_control import run_script
from farm.core.runs.evidence import Evidence, ExitRecord
from farm.harness.failures.classification import classify

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30)


@given(words=st.lists(WORDS, max_size=5), value=WORDS)
def test_every_word_and_variable_reaches_the_program_as_it_is(words: list[str], value: str) -> None:
    program = 'printf "%s\\0" "$WHAT" "$@"'
    script = run_script("/", ["sh", "-c", program, "x", *words], {"WHAT": value})
    said = subprocess.run(["sh"], input=script.encode(), capture_output=True, check=True)
    assert said.stdout.decode().split("\0")[:-1] == [value, *words]


def test_a_run_without_its_folder_is_126(tmp_path: Path) -> None:
    script = run_script(str(tmp_path / "gone"), ["true"], {})
    assert subprocess.run(["sh"], input=script.encode(), capture_output=True, check=False).returncode == 126


@pytest.mark.parametrize("shell", [shell for shell in ("sh", "dash", "bash", "mksh") if shutil.which(shell)])
def test_a_script_that_arrived_cut_off_runs_no_part_of_its_command(shell: str, tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    whole = run_script(str(tmp_path), ["touch", str(ran), str(ran) + " with another word"], {"WHAT": "x y"})
    script = tmp_path / "runs" / "7" / "run.sh"
    script.parent.mkdir(parents=True)
    for length in range(1, len(whole.rstrip()), 2):
        script.write_text(whole[:length])
        done = subprocess.run([shell, str(script)], capture_output=True, text=True, check=False)
        assert done.returncode != 0, whole[:length]
        assert list(tmp_path.iterdir()) == [tmp_path / "runs"], whole[:length]
        ended = ExitRecord(code=done.returncode, duration_s=0.0)
        failure = classify(Evidence(fence=7, exit=ended, stderr=done.stderr))
        assert failure is not None
        assert failure.code == "run.start_cut_off", done.stderr
    script.write_text(whole)
    assert subprocess.run([shell, str(script)], check=False).returncode == 0
    assert ran.exists()
