"""A farm that asks everybody who they are: what each role reaches, and the commands that show a token."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from farm.api.app import ROUTERS
from farm.api.http.openapi import roles_by_route
from farm.cli.access.credentials import find_login, login_file
from farm.cli.shell import address
from farm.cli.shell.main import main
from farm.client.farm_client import FarmClient
from farm.core.devices.host_state import HostState
from farm.core.errors import AuthError, Forbidden
from farm.core.operations.role import ROLES_BY_RANK, Role, is_permitted
from farm.database.tables import events, hosts
from farm.wire.documents.access import AccessRequest
from tests.api.routes.test_all_routes import matrix_spec, refused, register_variant
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import phone

Tokens = Callable[..., str]


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm"), require_tokens=True) as served:
        yield served


@pytest.fixture(scope="module")
def token(farm: HttpFarm) -> Tokens:
    """Makes an access token."""

    def make(role: Role, name: str = "ann") -> str:
        return farm.access_token(role, name)

    return make


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Nobody is logged in, and nobody's environment says anything."""
    for name in ("FARM_URL", "FARM_TOKEN", "FARM_TOKEN_FILE", "FARM_USER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("FARM_DATA_DIR", str(tmp_path / "nothing"))
    address.warn_unencrypted.cache_clear()
    return tmp_path


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as left:
        main(words)
    return int(left.value.code or 0)


def private(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o600)
    return path


CALLS = sorted(call for call, needed in roles_by_route(ROUTERS).items() if needed)
NOBODY = [{}, bearer("bfu_guessed"), {"Authorization": "Basic YTpi"}, {"Farm-User": "root"}]


def numbered(path: str) -> str:
    """A path with something in its gaps that could be a number, a digest or a name."""
    return re.sub(r"\{\w+\}", "1", path)


@pytest.mark.parametrize(("method", "path"), CALLS, ids=lambda part: str(part).removeprefix("/api/v1"))
@pytest.mark.invariant("I19")
def test_no_one_gets_an_answer_without_a_token(farm: HttpFarm, method: str, path: str) -> None:
    for headers in NOBODY:
        # Not even that what they send makes no sense.
        answer = farm.http.request(method, numbered(path), headers=headers, content=b"{")
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        if method != "HEAD":
            refused(answer, 401, "auth.invalid")


def test_a_stranger_learns_that_the_farm_is_well_and_not_what_there_is(farm: HttpFarm) -> None:
    assert farm.http.get("/api/v1/health").status_code == 200
    refused(farm.http.get("/openapi.json"), 401, "auth.invalid")
    refused(farm.http.get("/api/v1/nothing"), 401, "auth.invalid")


@pytest.mark.parametrize("role", ROLES_BY_RANK)
@pytest.mark.invariant("I19")
def test_each_role_reaches_its_calls_and_no_others(farm: HttpFarm, token: Tokens, role: Role) -> None:
    shown = bearer(token(role))
    for (method, path), needed in roles_by_route(ROUTERS).items():
        if not needed or path.startswith("/api/v1/agent/"):
            continue
        answer = farm.http.request(method, numbered(path), headers=shown, content=b"")
        assert (answer.status_code == 403) != is_permitted(role, needed[0]), (method, path, answer.text)


def test_people_are_no_agents_and_agents_are_no_people(farm: HttpFarm, token: Tokens) -> None:
    agent = farm.enroll("bench-role")
    refused(farm.http.get("/api/v1/devices", headers=agent.headers), 403, "auth.forbidden")
    opening = {"boot_id": "b", "agent_version": "a"}
    answer = farm.http.post("/api/v1/agent/sessions", json=opening, headers=bearer(token(Role.ADMIN)))
    refused(answer, 401, "auth.invalid")


def test_a_persons_token_is_looked_up_once(farm: HttpFarm, token: Tokens) -> None:
    shown, said = bearer(token(Role.VIEWER)), []

    @sa.event.listens_for(farm.context.database.engine, "before_cursor_execute")
    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if "access_tokens" in statement:
            said.append(statement)

    assert farm.http.get("/api/v1/caller", headers=shown).json()["role"] == "viewer"
    assert len(said) == 1


def actors(farm: HttpFarm, kind: str) -> set[str]:
    query = sa.select(events.c.actor).where(events.c.kind == kind)
    with farm.context.database.engine.connect() as connection:
        return set(connection.execute(query).scalars())


@pytest.mark.invariant("I19")
def test_a_proven_name_goes_before_the_one_that_is_said(farm: HttpFarm, token: Tokens) -> None:
    agent = farm.enroll("bench-name")
    agent.exchange(devices=(phone("phone-name"),))
    shown = bearer(token(Role.OPERATOR, "olga"))
    path = "/api/v1/devices/phone-name"
    held = farm.http.post(f"{path}/reserve", json={"by": "boss", "for_s": 60}, headers=shown)
    assert held.json()["device"]["reserved_by"] == "olga"
    other = bearer(token(Role.OPERATOR, "otto"))
    # Who says the name of the one that holds it does not get at it.
    refused(farm.http.get(f"{path}/adb", params={"by": "olga"}, headers=other), 409, "conflict")
    refused(farm.http.post(f"{path}/release", json={"by": "olga"}, headers=other), 409, "conflict")
    assert actors(farm, "device_reserved") == {"user:olga"}
    farm.http.post(f"{path}/release", json={"by": "boss"}, headers=shown)
    assert actors(farm, "device_released") == {"user:olga"}


def test_a_matrix_says_who_submitted_it_and_anybody_may_cancel_it(farm: HttpFarm, token: Tokens) -> None:
    ann, ben = bearer(token(Role.SUBMITTER, "ann")), bearer(token(Role.SUBMITTER, "ben"))
    farm.enroll("bench-matrix").exchange(devices=(phone("phone-matrix"),))
    farm.http.headers.update(ann)
    try:
        assert register_variant(farm).status_code == 201
    finally:
        del farm.http.headers["Authorization"]
    made = farm.http.post(
        "/api/v1/matrices", json={"spec": matrix_spec()}, headers={**ann, "Farm-User": "boss"}
    )
    assert made.json()["submitted_by"] == "ann", made.text
    cancel = f"/api/v1/matrices/{made.json()['matrix_id']}/cancel"
    assert farm.http.post(cancel, json={}, headers=ben).json()["queued"] >= 5
    assert actors(farm, "matrix_cancelled") == {"user:ben"}


@pytest.mark.parametrize(
    ("origin", "status"), [("http://farm.lab", 200), ("http://evil.example", 403), ("null", 403)]
)
def test_any_name_will_do_but_no_page_from_elsewhere(
    farm: HttpFarm, token: Tokens, origin: str, status: int
) -> None:
    shown = {**bearer(token(Role.VIEWER)), "Host": "farm.lab", "X-Forwarded-For": "10.0.0.1"}
    assert farm.http.get("/api/v1/caller", headers=shown).status_code == 200
    answer = farm.http.get("/api/v1/caller", headers={**shown, "Origin": origin})
    assert answer.status_code == status


@pytest.mark.parametrize(
    "header", ["X-Forwarded-For", "Forwarded", "X-Real-IP", "X-Forwarded-Host", "X-Forwarded-Proto", "Via"]
)
def test_a_farm_without_tokens_does_not_answer_a_proxy(tmp_path: Path, header: str) -> None:
    with http_farm(tmp_path / "open") as farm:
        answer = farm.http.get("/api/v1/devices", headers={header: "10.0.0.1"})
        assert "FARM_REQUIRE_TOKENS=1" in refused(answer, 421, "input.invalid")["hint"]
        assert farm.http.get("/api/v1/devices").status_code == 200


def test_on_loopback_without_a_token_one_is_who_one_says(tmp_path: Path) -> None:
    with http_farm(tmp_path / "open") as farm:
        said = {"name": "ann", "role": "admin", "is_authenticated": False}
        assert farm.http.get("/api/v1/caller", headers={"Farm-User": "ann"}).json() == said
        odd = farm.http.get("/api/v1/caller", headers={"Farm-User": "J%C3%BCrgen"}).json()
        assert odd["name"] == "Jürgen"
        refused(farm.http.get("/api/v1/caller", headers={"Farm-User": "a%0ab"}), 422, "input.invalid")
        # A token that is no good is no reason to be anybody.
        refused(farm.http.get("/api/v1/caller", headers=bearer("bfu_x")), 401, "auth.invalid")


def test_a_client_shows_its_token_and_is_told_what_it_may_not(farm: HttpFarm, token: Tokens) -> None:
    with FarmClient(farm.url, token=token(Role.VIEWER, "vera")) as client:
        assert (client.caller().name, client.caller().role) == ("vera", Role.VIEWER)
        with pytest.raises(Forbidden, match="vera is a viewer, and this needs an admin"):
            client.create_access_token(AccessRequest(name="vera", role=Role.ADMIN))
    with FarmClient(farm.url) as client, pytest.raises(AuthError):
        client.devices()


def test_commands_take_the_token_of_the_environment(
    farm: HttpFarm,
    token: Tokens,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FARM_URL", farm.url)
    assert run("devices") == 2
    said = capsys.readouterr().err
    assert "hint: " in said
    assert "farm login URL" in said
    monkeypatch.setenv("FARM_TOKEN", token(Role.VIEWER, "vera"))
    assert run("whoami", "--json") == 0
    assert json.loads(capsys.readouterr().out)["name"] == "vera"
    assert run("storage", "sweep") == 2
    assert "this needs an operator" in capsys.readouterr().err
    file = private(home / "token", token(Role.OPERATOR, "olga"))
    monkeypatch.setenv("FARM_TOKEN_FILE", str(file))
    assert run("whoami") == 0
    assert capsys.readouterr().out.startswith("olga (operator) at ")


def test_a_login_is_kept_for_oneself_and_used_by_all_commands(
    farm: HttpFarm, token: Tokens, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    secret = token(Role.SUBMITTER, "ann")
    assert run("login", farm.url, "--token-file", str(private(home / "token", secret))) == 0
    assert login_file().stat().st_mode & 0o777 == 0o600
    assert secret not in "".join(capsys.readouterr())
    assert run("whoami") == 0
    assert capsys.readouterr().out == f"ann (submitter) at {farm.url}\n"
    login_file().chmod(0o644)
    assert run("whoami") == 2
    assert "chmod 600" in capsys.readouterr().err


def test_a_token_that_is_no_good_is_not_kept(
    farm: HttpFarm, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("login", farm.url, "--token-file", str(private(home / "token", "bfu_guessed"))) == 2
    assert "hint: " in capsys.readouterr().err
    assert not login_file().exists()


def test_a_login_at_one_farm_is_not_shown_to_another(
    farm: HttpFarm,
    token: Tokens,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run("login", farm.url, "--token-file", str(private(home / "token", token(Role.ADMIN))))
    with http_farm(home / "other", require_tokens=True) as other:
        monkeypatch.setenv("FARM_URL", other.url)
        capsys.readouterr()
        assert run("whoami") == 2
        # It had been told of a token that it does not know, had it been shown one.
        assert "answers no request without an access token" in capsys.readouterr().err


def test_a_token_over_the_network_in_the_clear_is_remarked_on_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_TOKEN", "bfu_x")
    for url in ("http://farm.lab:8470", "http://farm.lab:8470", "https://farm.lab", "http://127.0.0.1:9"):
        address.connect_to(url).close()
    assert capsys.readouterr().err.count("unencrypted") == 1


def test_an_admin_makes_lists_and_revokes_tokens(
    farm: HttpFarm,
    token: Tokens,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FARM_URL", farm.url)
    monkeypatch.setenv("FARM_TOKEN", token(Role.ADMIN, "root"))
    made = ("token", "create", "--role", "submitter", "--name", "zoe", "--valid", "90d")
    assert run(*made, "--out", str(home / "zoe"), "--json") == 0
    token_id = json.loads(capsys.readouterr().out)["token_id"]
    assert (home / "zoe").stat().st_mode & 0o777 == 0o600
    assert run("token", "create", "--json") == 0
    joining = json.loads(capsys.readouterr().out)["token_id"]
    assert run("token", "list", "--json") == 0
    roles = {each["token_id"]: (each["role"], each["state"]) for each in json.loads(capsys.readouterr().out)}
    assert (roles[token_id], roles[joining]) == (("submitter", "open"), ("agent", "open"))
    assert run("token", "list") == 0
    assert "zoe" in capsys.readouterr().out
    shown = bearer((home / "zoe").read_text().strip())
    assert farm.http.get("/api/v1/caller", headers=shown).json()["name"] == "zoe"
    farm.context.token_uses()
    assert run("token", "list", "--json") == 0
    used = {each["token_id"]: each.get("last_used_at") for each in json.loads(capsys.readouterr().out)}
    assert used[token_id] is not None
    assert (
        run("token", "rotate", token_id, "--grace", "1h", "--valid", "30d", "--out", str(home / "new")) == 0
    )
    assert f"Access token {token_id} is valid for 1h more at most" in capsys.readouterr().err
    rotated = bearer((home / "new").read_text().strip())
    assert farm.http.get("/api/v1/caller", headers=rotated).json()["role"] == "submitter"
    assert run("token", "rotate", token_id, "--grace", "31d") == 2
    assert "from 0s to 30d" in capsys.readouterr().err
    assert run("token", "revoke", token_id) == 0
    assert run("token", "revoke", joining) == 0
    assert farm.http.get("/api/v1/caller", headers=shown).status_code == 401
    assert actors(farm, "access_token_revoked") == {"user:root"}


@pytest.mark.parametrize(
    "words",
    [
        ("--role", "viewer"),
        ("--role", "viewer", "--name", "a b"),
        ("--role", "viewer", "--name", "a", "--valid", "1s"),
        ("--role", "viewer", "--name", "a", "--auto-admit"),
        ("--name", "a"),
    ],
    ids=" ".join,
)
def test_a_token_that_makes_no_sense_leaves_no_file(
    home: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...]
) -> None:
    assert run("token", "create", *words, "--out", str(home / "token")) == 2
    assert "hint: " in capsys.readouterr().err
    assert not (home / "token").exists()


def test_before_a_farm_runs_its_tokens_are_made_in_its_database(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, file = home / "farm", home / "admin"
    words = ("token", "create", "--role", "admin", "--name", "ann", "--data", str(folder))
    assert run(*words, "--out", str(file)) == 0
    assert str(folder) in capsys.readouterr().err
    with http_farm(folder, require_tokens=True) as farm:
        caller = farm.http.get("/api/v1/caller", headers=bearer(file.read_text().strip())).json()
        assert caller == {"name": "ann", "role": "admin", "is_authenticated": True}


@pytest.mark.parametrize("home", ["/nonexistent", "/dev/null", ""])
def test_who_has_no_home_is_logged_in_nowhere(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    monkeypatch.delenv("XDG_CONFIG_HOME")
    monkeypatch.setenv("HOME", home)
    assert find_login() is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"url": "http://farm.lab"}'])
def test_a_login_that_is_none_is_said_to_be_none(capsys: pytest.CaptureFixture[str], text: str) -> None:
    login_file().parent.mkdir(parents=True)
    private(login_file(), text)
    assert run("whoami") == 2
    assert "is not a login" in capsys.readouterr().err


@pytest.mark.invariant("I19")
def test_a_retired_host_gets_no_further(farm: HttpFarm) -> None:
    agent = farm.enroll("bench-retired")
    assert agent.exchange().status_code == 200
    retired = hosts.update().where(hosts.c.host_id == "bench-retired").values(state=HostState.RETIRED)
    farm.context.database.write(lambda connection: connection.execute(retired))
    refused(agent.exchange(), 401, "auth.invalid")
    refused(agent.post("/attempts/1/report", content=b"{}"), 401, "auth.invalid")
    assert farm.http.get(f"/api/v1/blobs/{'0' * 64}", headers=agent.headers).status_code == 401
