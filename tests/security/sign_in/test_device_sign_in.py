"""`farm login` without a token, at a farm with an identity provider."""

import io
import json
import time
from pathlib import Path

import httpx
import pytest

from farm.cli.access.credentials import Login, login_file, save_login
from farm.cli.shell.main import main
from farm.core.operations.role import Role
from tests.security.sign_in.provider import Provider
from tests.support.farm.http_farm import HttpFarm, http_farm


@pytest.fixture(autouse=True)
def pauses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """No one is logged in, standard input is empty, and waiting is recorded in place of done."""
    for name in ("FARM_URL", "FARM_TOKEN", "FARM_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    waited: list[float] = []
    monkeypatch.setattr(time, "sleep", waited.append)
    return waited


def login(url: str, *words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(["login", url, *words])
    return int(left.value.code or 0)


def logout() -> int:
    with pytest.raises(SystemExit) as left:
        main(["logout"])
    return int(left.value.code or 0)


def test_a_person_enters_a_code_and_is_logged_in(
    farm: HttpFarm, provider: Provider, capsys: pytest.CaptureFixture[str], pauses: list[float]
) -> None:
    provider.device_errors = ["authorization_pending", "slow_down", "authorization_pending"]
    assert login(farm.url) == 0
    said = capsys.readouterr().err
    assert f"Open {provider.url}/enter in a browser, and enter the code WDJB-MJHT" in said
    assert f"Logged in at {farm.url} as ann (submitter)." in said
    assert pauses == [1, 1, 6, 6]
    stored = json.loads(login_file().read_text())
    bearer = {"Authorization": f"Bearer {stored['token']}"}
    caller = farm.http.get("/api/v1/caller", headers=bearer).json()
    assert (caller["name"], caller["role"]) == ("ann", "submitter")
    assert stored["token"] not in said


@pytest.mark.parametrize(
    ("errors", "code", "said"),
    [
        (["access_denied"], 2, "refused at the identity provider"),
        (["authorization_pending", "expired_token"], 2, "has expired or was used"),
        (["slow_down"] * 20, 2, "WDJB-MJHT was not entered in time"),
        (["unauthorized_client"], 6, "unauthorized_client"),
    ],
)
def test_a_code_that_leads_to_no_one_is_told_and_nothing_is_stored(
    farm: HttpFarm,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    errors: list[str],
    code: int,
    said: str,
) -> None:
    provider.device_errors = errors
    assert login(farm.url) == code
    told = capsys.readouterr().err
    assert said in told
    assert "hint: " in told
    assert not login_file().exists()


def test_who_has_no_group_is_not_logged_in(
    farm: HttpFarm, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.claims["groups"] = ["sales"]
    assert login(farm.url) == 2
    assert "the claim groups has sales" in capsys.readouterr().err
    assert not login_file().exists()


def test_an_id_token_of_another_client_logs_no_one_in(
    farm: HttpFarm, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.claims["aud"] = "another"
    assert login(farm.url) == 2
    assert "the ID token is not valid" in capsys.readouterr().err
    assert not login_file().exists()


def test_a_provider_that_is_down_is_named(
    farm: HttpFarm, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.is_down = True
    assert login(farm.url) == 6
    assert "the identity provider answers 503" in capsys.readouterr().err
    assert not login_file().exists()


def test_a_provider_without_the_flow_is_named(
    farm: HttpFarm, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    provider.metadata = {"device_authorization_endpoint": None}
    assert login(farm.url) == 6
    assert "no usable device_authorization_endpoint" in capsys.readouterr().err


def test_a_token_is_taken_before_the_provider_is_asked(
    farm: HttpFarm, provider: Provider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = farm.access_token("viewer", "ben")
    file = tmp_path / "ben.token"
    file.touch(mode=0o600)
    file.write_text(secret)
    assert login(farm.url, "--token-file", str(file)) == 0
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{secret}\n"))
    assert login(farm.url) == 0
    assert json.loads(login_file().read_text())["token"] == secret
    assert provider.asked == []


def test_a_farm_without_a_provider_wants_a_token_as_before(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with http_farm(tmp_path / "farm", require_tokens=True) as farm:
        assert login(farm.url) == 2
    assert "there is no access token on standard input" in capsys.readouterr().err


def test_an_id_token_is_taken_from_the_provider_only(farm: HttpFarm, provider: Provider) -> None:
    """A caller can name a code, and nothing that the farm would believe."""
    path = f"{farm.url}/api/v1/sign-in/device/token"
    for body in ({"device_code": provider.id_token(None)}, {"device_code": "guessed"}):
        answer = httpx.post(path, json=body, trust_env=False)
        assert answer.status_code == 401
    sent = httpx.post(path, json={"device_code": "x", "id_token": "y"}, trust_env=False)
    assert sent.status_code == 422
    assert httpx.post(path, json={"device_code": "x" * 5000}, trust_env=False).status_code == 413


def test_who_logs_out_after_a_sign_in_leaves_no_valid_token(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    assert login(farm.url) == 0
    bearer = {"Authorization": f"Bearer {json.loads(login_file().read_text())['token']}"}
    assert farm.http.get("/api/v1/caller", headers=bearer).status_code == 200
    capsys.readouterr()
    assert logout() == 0
    assert capsys.readouterr().err == (
        f"Logged out of {farm.url}. {login_file()} is removed.\nIts token is revoked.\n"
    )
    assert farm.http.get("/api/v1/caller", headers=bearer).status_code == 401


def test_who_logs_out_with_a_token_of_their_own_keeps_it_valid(
    farm: HttpFarm, capsys: pytest.CaptureFixture[str]
) -> None:
    token = farm.access_token(Role.SUBMITTER, "ben")
    save_login(Login(url=farm.url, token=token))
    assert logout() == 0
    assert "The token stays valid" in capsys.readouterr().err
    bearer = {"Authorization": f"Bearer {token}"}
    assert farm.http.get("/api/v1/caller", headers=bearer).status_code == 200
