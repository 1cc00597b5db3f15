"""Sign-in: a token once, then a cookie; other sites, old sessions and revoked tokens get nowhere."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from farm.api.http.openapi import roles_by_route
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token, revoke_access_token
from farm.web.app import PAGE_ROUTERS
from farm.web.http.sign_in import COOKIE, local_path
from farm.wire.documents.access import AccessRequest
from tests.support.farm.http_farm import HttpFarm, http_farm

HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpFarm]:
    with http_farm(tmp_path_factory.mktemp("farm"), require_tokens=True) as farm:
        yield farm


def token(farm: HttpFarm, role: Role = Role.VIEWER, name: str = "ann") -> tuple[str, str]:
    """A new token, and its id."""
    issue = bind_tx(issue_access_token, now=farm.context.clock.now())
    made = farm.context.database.write(issue, AccessRequest(name=name, role=role))
    return made.token, made.token_id


@contextmanager
def signed_in(farm: HttpFarm, secret: str) -> Iterator[httpx.Client]:
    """A browser with the cookie of a session."""
    with httpx.Client(base_url=farm.url, trust_env=False, headers=HTML, timeout=30) as browser:
        answer = browser.post("/login", data={"token": secret, "next": "/devices?find=x"})
        assert answer.status_code == 303, answer.text
        assert answer.headers["location"] == "/devices?find=x"
        yield browser


def test_a_page_leads_to_the_sign_in_and_back(farm: HttpFarm) -> None:
    answer = farm.http.get("/devices?find=x", headers=HTML)
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=%2Fdevices%3Ffind%3Dx"
    form = farm.http.get(answer.headers["location"], headers=HTML)
    assert form.status_code == 200
    assert 'name="next" value="/devices?find=x"' in form.text
    assert farm.http.get("/static/style.css").status_code == 200
    with signed_in(farm, token(farm)[0]) as browser:
        assert "ann, viewer" in browser.get("/").text


def test_programs_get_a_problem_document_and_no_redirect(farm: HttpFarm) -> None:
    for path in ("/", "/api/v1/devices"):
        answer = farm.http.get(path)
        assert answer.status_code == 401
        assert answer.headers["content-type"] == "application/problem+json"
    assert farm.http.get("/api/v1/devices", headers=HTML).status_code == 401


def test_the_cookie_is_for_no_script_and_no_other_site(farm: HttpFarm) -> None:
    secret, _ = token(farm)
    answer = farm.http.post("/login", data={"token": secret})
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert "secure" not in cookie.lower()
    assert secret not in cookie
    behind_tls = farm.http.post("/login", data={"token": secret}, headers={"X-Forwarded-Proto": "https"})
    assert "secure" in behind_tls.headers["set-cookie"].lower()


def test_a_wrong_token_says_what_to_do_and_signs_no_one_in(farm: HttpFarm) -> None:
    answer = farm.http.post("/login", data={"token": "bfu_" + "a" * 43})
    assert answer.status_code == 401
    assert "unknown, too old or revoked" in answer.text
    assert "set-cookie" not in answer.headers
    assert farm.http.post("/login", data={"token": "x" * 5000}).status_code == 413


def test_signing_out_ends_the_session_and_not_the_token(farm: HttpFarm) -> None:
    secret, _ = token(farm)
    with signed_in(farm, secret) as browser:
        kept = browser.cookies[COOKIE]
        assert browser.post("/logout").headers["location"] == "/login"
        assert COOKIE not in browser.cookies
        assert farm.http.get("/", headers={**HTML, "Cookie": f"{COOKIE}={kept}"}).status_code == 303
    with signed_in(farm, secret) as browser:
        assert browser.get("/").status_code == 200


def test_a_revoked_token_ends_its_sessions(farm: HttpFarm) -> None:
    secret, token_id = token(farm)
    with signed_in(farm, secret) as browser:
        assert browser.get("/").status_code == 200
        revoke = bind_tx(revoke_access_token, now=farm.context.clock.now())
        farm.context.database.write(revoke, token_id)
        assert browser.get("/").status_code == 303


def test_a_session_that_ended_says_so_and_keeps_what_was_typed(farm: HttpFarm) -> None:
    secret, token_id = token(farm, Role.OPERATOR)
    with signed_in(farm, secret) as browser:
        farm.context.database.write(bind_tx(revoke_access_token, now=farm.context.clock.now()), token_id)
        page = browser.get("/devices?find=x")
        assert page.headers["location"] == "/login?next=%2Fdevices%3Ffind%3Dx&ended=true"
        assert "Your session has ended." in browser.get(page.headers["location"]).text
        form = browser.post(
            "/devices/phone-7/cordon", data={"key": "k", "reason": 'new cable, "blue"', "for": "3h"}
        )
        assert form.status_code == 303
        asked = parse_qs(urlsplit(form.headers["location"]).query)["next"][0]
        assert urlsplit(asked).path == "/devices/phone-7/cordon"
        assert parse_qs(urlsplit(asked).query) == {"reason": ['new cable, "blue"'], "for": ["3h"]}
        huge = browser.post("/devices/phone-7/cordon", data={"reason": "x" * 5000})
        assert huge.headers["location"] == "/login?next=%2Fdevices%2Fphone-7%2Fcordon&ended=true"
        assert browser.post("/api/v1/devices/x/cordon", json={"by": "ann"}).status_code == 401
    form = farm.http.post("/devices/phone-7/cordon", data={"reason": "x"}, headers=HTML)
    assert form.headers["location"] == "/login?next=%2Fdevices%2Fphone-7%2Fcordon"


def test_a_viewer_stays_signed_in_on_a_wall_and_who_may_act_for_a_day(farm: HttpFarm) -> None:
    for role, seconds in ((Role.VIEWER, 30 * 86_400), (Role.OPERATOR, 12 * 3600)):
        answer = farm.http.post("/login", data={"token": token(farm, role)[0]})
        assert f"Max-Age={seconds};" in answer.headers["set-cookie"]


def test_the_cookie_has_the_role_of_its_token_on_the_api_too(farm: HttpFarm) -> None:
    with signed_in(farm, token(farm)[0]) as browser:
        assert browser.get("/api/v1/devices").status_code == 200
        assert browser.post("/api/v1/devices/x/cordon", json={"by": "ann"}).status_code == 403


def test_a_page_elsewhere_can_neither_sign_in_nor_act(farm: HttpFarm) -> None:
    secret, _ = token(farm, Role.ADMIN)
    with signed_in(farm, secret) as browser:
        elsewhere = {"Origin": "https://evil.example"}
        assert browser.post("/logout", headers=elsewhere).status_code == 403
        assert browser.get("/").status_code == 200
    assert farm.http.post("/login", data={"token": secret}, headers=elsewhere).status_code == 403


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/devices?find=x", "/devices?find=x"),
        ("https://evil.example/", "/"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("devices", "/"),
    ],
)
def test_the_sign_in_leads_to_no_other_site(path: str, expected: str) -> None:
    assert local_path(path) == expected


def test_every_page_names_the_role_that_it_needs() -> None:
    open_to_all = {("GET", "/login"), ("POST", "/login"), ("POST", "/logout")}
    open_to_all |= {("GET", "/login/oidc"), ("GET", "/login/oidc/callback")}
    for call, needed in roles_by_route(PAGE_ROUTERS).items():
        assert bool(needed) != (call in open_to_all), call
        assert needed != (Role.VIEWER,) or call[0] == "GET"


def test_a_farm_without_tokens_has_no_sign_in(tmp_path: Path) -> None:
    with http_farm(tmp_path) as farm:
        answer = farm.http.get("/login?next=/hosts", headers=HTML)
        assert (answer.status_code, answer.headers["location"]) == (303, "/hosts")
        assert farm.http.get("/", headers=HTML).status_code == 200
