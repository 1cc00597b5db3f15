import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from agents.device.execute import run_script

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
