"""`farm up` where it cannot start: a sentence and a hint, and nothing is left running."""

import socket
from pathlib import Path

import pytest

from farm.cli.shell.main import main


def up(*words: str) -> int:
    """The exit code of `farm up`."""
    with pytest.raises(SystemExit) as left:
        main(["up", "--port", "0", *words])
    return int(left.value.code or 0)


@pytest.mark.parametrize("place", ["file/farm", "file"])
def test_a_data_folder_that_cannot_be_made_is_named_with_a_hint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    (tmp_path / "file").touch()
    assert up("--data", str(tmp_path / place)) == 2
    said, error, hint = capsys.readouterr().err.splitlines()
    assert said.startswith(f"Starting a farm in {tmp_path / place};")
    assert error.startswith(f"error: the data folder {tmp_path / place} cannot be used: ")
    assert "--data" in hint


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("FARM_AGENT_ADB_CONNECT", "foo", "FARM_AGENT_ADB_CONNECT=foo: 'foo' is not HOST:PORT"),
        ("FARM_AGENT_CACHE_LIMIT_BYTES", "-1", "FARM_AGENT_CACHE_LIMIT_BYTES=-1: "),
        ("FARM_REAP_EVERY_S", "soon", "FARM_REAP_EVERY_S=soon: "),
        ("FARM_AGENTS_BIND", "everywhere", "FARM_AGENTS_BIND=everywhere: 'everywhere' is not HOST:PORT"),
    ],
)
def test_a_setting_that_cannot_be_is_named_and_no_phone_is_started(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: str,
    said: str,
) -> None:
    monkeypatch.setenv(name, value)
    assert up("--data", str(tmp_path / "farm"), "--virtual", "1") == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error.startswith(f"error: {said}")
    assert hint == f"hint: correct {name}, or the option that stands for it"
    assert not (tmp_path / "farm" / "virtual").exists()


def test_a_folder_too_deep_for_a_socket_is_refused_before_any_phone_is_started(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / ("deep" * 25)
    assert up("--data", str(folder), "--virtual", "1") == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error.endswith(f"at most 107 are possible: {folder}/agent/adb/socket")
    assert hint.endswith("or FARM_DATA_DIR for `farm up`")
    assert not (folder / "virtual").exists()


def test_nnapi_without_virtual_devices_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert up("--data", str(tmp_path / "farm"), "--virtual-nnapi") == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert error == "error: --virtual-nnapi is for virtual devices, and there are none"
    assert hint == "hint: add --virtual 1"


@pytest.mark.parametrize("asks", ["FARM_REQUIRE_TOKENS", "FARM_BIND"])
def test_virtual_devices_of_several_people_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], asks: str
) -> None:
    monkeypatch.setenv(asks, "1" if asks == "FARM_REQUIRE_TOKENS" else "0.0.0.0")
    assert up("--data", str(tmp_path / "farm"), "--virtual", "1") == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert "virtual devices have no sandbox" in error
    assert "FARM_UNCONFINED_VIRTUAL=1" in hint
    assert not (tmp_path / "farm").exists()
    # Then the next check is the one that fails.
    monkeypatch.setenv("FARM_UNCONFINED_VIRTUAL", "1")
    assert up("--data", str(tmp_path / "farm"), "--virtual", "1") == 2
    assert "needs an access token" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["FARM_TLS_CERT", "FARM_TLS_KEY"])
def test_a_certificate_without_its_key_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    monkeypatch.setenv(given, "farm.pem")
    assert up("--data", str(tmp_path / "farm"), "--no-agent") == 2
    assert "FARM_TLS_CERT and FARM_TLS_KEY need each other" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"FARM_OIDC_ISSUER": "http://sso.lab"},
            "FARM_OIDC_ISSUER=http://sso.lab: it must look like https://",
        ),
        ({"FARM_OIDC_ISSUER": None}, "it needs FARM_OIDC_ISSUER, too"),
        ({"FARM_OIDC_CLIENT_ID": None}, "needs FARM_OIDC_CLIENT_ID and FARM_OIDC_ROLES, too"),
        ({"FARM_OIDC_ROLES": None}, "needs FARM_OIDC_CLIENT_ID and FARM_OIDC_ROLES, too"),
        ({"FARM_OIDC_ROLES": "ml=king"}, "'ml=king' must be a group"),
        ({"FARM_OIDC_CLIENT_SECRET_FILE": "nowhere"}, "it cannot be read"),
        ({"FARM_OIDC_CLIENT_SECRET_FILE": "/dev/null"}, "it is empty"),
        ({"FARM_OIDC_SCOPES": "profile"}, "`openid` must be among them"),
        ({}, "on loopback this farm lets everyone of this machine in as an admin"),
        # Nothing is asked of the provider, which is not there.
        ({"FARM_REQUIRE_TOKENS": "1"}, "needs an access token"),
    ],
)
def test_settings_of_an_identity_provider_are_checked_before_a_farm_starts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changed: dict[str, str | None],
    said: str,
) -> None:
    given = {
        "FARM_OIDC_ISSUER": "https://sso.invalid",
        "FARM_OIDC_CLIENT_ID": "benchfarm",
        "FARM_OIDC_ROLES": "ml=submitter",
    }
    for name, value in {**given, **changed}.items():
        if value is not None:
            monkeypatch.setenv(name, value)
    assert up("--data", str(tmp_path / "farm"), "--no-agent") == 2
    told = capsys.readouterr().err
    assert said in told
    assert "hint: " in told


def test_an_address_for_agents_that_is_taken_is_named_with_the_option(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        taken = f"127.0.0.1:{other.getsockname()[1]}"
        assert up("--data", str(tmp_path / "farm"), "--agents-on", taken) == 2
    error, hint = capsys.readouterr().err.splitlines()[-2:]
    assert taken in error
    assert "--agents-on" in hint
