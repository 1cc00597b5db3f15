"""What commands say where an address or a role leads nowhere: whose it is, and which there are."""

from contextlib import closing
from pathlib import Path
from socket import create_server

import pytest

from farm.cli.access.credentials import Login, login_file, save_login
from farm.cli.shell.main import main
from farm.core.operations.role import Role


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody is logged in, and nobody's environment says anything."""
    for name in ("FARM_URL", "FARM_TOKEN", "FARM_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("FARM_DATA_DIR", str(tmp_path / "nothing"))
    return tmp_path


@pytest.fixture
def nowhere() -> str:
    """The address of a farm that is down."""
    with closing(create_server(("127.0.0.1", 0))) as held:
        port = held.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0), capsys.readouterr().err


def test_a_login_at_a_farm_that_is_down_is_named_with_the_ways_out(
    nowhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    save_login(Login(url=nowhere, token="bfu_x"))
    code, told = said(capsys, "devices")
    assert code == 10
    assert f"no farm answers at {nowhere}" in told
    for word in (str(login_file()), "farm login URL", "FARM_URL", "`farm logout` logs you out"):
        assert word in told


def test_an_address_of_the_environment_is_not_blamed_on_the_login(
    nowhere: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save_login(Login(url=nowhere, token="bfu_x"))
    monkeypatch.setenv("FARM_URL", nowhere)
    _, told = said(capsys, "devices")
    assert str(login_file()) not in told
    assert "farm up" in told


def test_a_role_that_is_none_is_refused_with_those_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    code, told = said(capsys, "token", "create", "--role", "king", "--name", "ann")
    assert code == 2
    assert "there is no role 'king'" in told
    assert "Value error" not in told
    assert all(role in told for role in Role)
