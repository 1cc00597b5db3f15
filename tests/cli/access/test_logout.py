"""Log out: what `farm login` stored is gone, and the person knows what is not."""

from pathlib import Path

import pytest

from farm.cli.access.credentials import Login, find_login, login_file, remove_login, save_login
from farm.cli.shell.main import main
from farm.core.errors import InvalidInput
from tests.support.faults.other_user import needs_root, other_user

TOKEN = "bfu_9Zk3rQx7LmT2vWc8NhYp5JdEa4UgSbFo6iKtXqR1MzC"
#: The first part of its SHA-256, which the farm lists.
TOKEN_ID = "f74474eca578"
#: Where no farm is.
URL = "http://127.0.0.1:9"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def logged_out(capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(["logout"])
    out, err = capsys.readouterr()
    assert out == ""
    return int(left.value.code or 0), err


def test_a_login_is_forgotten_while_its_farm_is_down(capsys: pytest.CaptureFixture[str]) -> None:
    save_login(Login(url=URL, token=TOKEN))
    code, said = logged_out(capsys)
    assert code == 0
    assert said.startswith(f"Logged out of {URL}. {login_file()} is removed.\n")
    assert said.endswith(f"ask an administrator: farm token revoke {TOKEN_ID}\n")
    assert TOKEN not in said
    assert find_login() is None
    assert list(login_file().parent.iterdir()) == []


def test_who_is_not_logged_in_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert logged_out(capsys) == (0, "You are not logged in on this machine.\n")


@pytest.mark.parametrize("text", ["", "{", '{"url": "http://farm.lab"}'])
def test_a_damaged_login_is_removed(capsys: pytest.CaptureFixture[str], text: str) -> None:
    login_file().parent.mkdir(parents=True)
    login_file().write_text(text)
    assert logged_out(capsys) == (0, f"Logged out. {login_file()} is removed.\n")
    assert not login_file().exists()


def test_a_login_that_others_can_read_is_removed_and_its_token_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    save_login(Login(url=URL, token=TOKEN))
    login_file().chmod(0o644)
    code, said = logged_out(capsys)
    assert (code, TOKEN_ID in said) == (0, True)
    assert not login_file().exists()


@needs_root
def test_a_login_that_this_user_cannot_remove_is_an_error_that_names_it(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(short_path))
    path = save_login(Login(url=URL, token=TOKEN))
    for folder in (short_path, path.parent):
        folder.chmod(0o755)
    with pytest.raises(InvalidInput) as caught, other_user():
        remove_login()
    assert caught.value.message == f"cannot remove {path}: Permission denied"
    assert caught.value.hint == f"remove it as its owner: rm {path}"
