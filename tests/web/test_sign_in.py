"""Sign-in: a token once, then a cookie; other sites, old sessions and revoked tokens get nowhere."""

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from farm.api.http.openapi import roles_by_route
from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.page_sessions import VALID_FOR_VIEWER
from farm.services.access.tokens import issue_access_token, revoke_access_token
from farm.web.app import PAGE_ROUTERS
from farm.web.http import sign_in
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
        # A wrong address signs nobody out.
        for path in ("/matrices/99", "/matrices?since=soon", "/nope"):
            answer = browser.get(path)
            assert answer.status_code in (404, 422)
            assert "ann, viewer" in answer.text
            assert "Sign out" in answer.text


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


TYPED = {"key": "k", "reason": 'new cable, "blue"', "for": "3h"}


def asked_after(answer: httpx.Response) -> tuple[str, dict[str, list[str]]]:
    """The page that the sign-in leads to: its path, and what stands in its form."""
    assert answer.status_code == 303
    asked = urlsplit(parse_qs(urlsplit(answer.headers["location"]).query)["next"][0])
    return asked.path, parse_qs(asked.query)


def test_a_session_that_ended_says_so_and_keeps_what_was_typed(farm: HttpFarm) -> None:
    secret, token_id = token(farm, Role.OPERATOR)
    path = "/devices/phone-7/cordon"
    with signed_in(farm, secret) as browser:
        # Longer than any session: without it, nobody would know that there was one.
        (cookie,) = browser.cookies.jar
        assert cookie.expires is not None
        assert cookie.expires - time.time() > VALID_FOR_VIEWER.total_seconds()
        farm.context.database.write(bind_tx(revoke_access_token, now=farm.context.clock.now()), token_id)
        page = browser.get("/devices?find=x")
        assert page.headers["location"] == "/login?next=%2Fdevices%3Ffind%3Dx&ended=true"
        assert "Your session has ended." in browser.get(page.headers["location"]).text
        typed = {"reason": [TYPED["reason"]], "for": ["3h"]}
        assert asked_after(browser.post(path, data=TYPED)) == (path, typed)
        # What is longer than the sign-in takes is not kept, and keeps no one from signing in.
        for reason in ("кабель " * 70, "x" * 5000):
            refused = browser.post(path, data={"reason": reason})
            assert asked_after(refused) == (path, {})
            assert browser.get(refused.headers["location"]).status_code == 200
        assert browser.post("/api/v1/devices/x/cordon", json={"by": "ann"}).status_code == 401
    # A browser that has no cookie any more.
    assert asked_after(farm.http.post(path, data=TYPED, headers=HTML)) == (path, typed)
    elsewhere = {**HTML, "Sec-Fetch-Site": "cross-site"}
    assert asked_after(farm.http.post(path, data=TYPED, headers=elsewhere)) == (path, {})


def test_the_longest_text_that_is_kept_goes_through_the_sign_in(farm: HttpFarm) -> None:
    path, reason = "/devices/phone-7/cordon", "ж" * 330
    refused = farm.http.post(path, data={"reason": reason}, headers=HTML)
    assert asked_after(refused) == (path, {"reason": [reason]})
    next_path = parse_qs(urlsplit(refused.headers["location"]).query)["next"][0]
    assert farm.http.get(refused.headers["location"], headers=HTML).status_code == 200
    answer = farm.http.post("/login", data={"token": token(farm)[0], "next": next_path})
    assert answer.headers["location"] == next_path


def test_a_form_that_never_comes_is_not_waited_for(farm: HttpFarm, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sign_in, "_FORM_S", 0.2)
    address = urlsplit(farm.url)
    with socket.create_connection((address.hostname, address.port), timeout=60) as slow:
        slow.sendall(
            b"POST /devices/x/cordon HTTP/1.1\r\nHost: farm\r\nAccept: text/html\r\n"
            b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nr"
        )
        assert slow.recv(12) == b"HTTP/1.1 303"


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


@contextmanager
def without_database(farm: HttpFarm) -> Iterator[None]:
    """The farm's database cannot be opened while the block runs."""
    folder = farm.context.config.data_dir
    away = folder.rename(f"{folder}-away")
    farm.context.database.engine.dispose()
    try:
        yield
    finally:
        away.rename(folder)


@pytest.mark.parametrize("require_tokens", [False, True])
def test_a_page_of_a_busy_farm_says_so_and_loads_itself_again(tmp_path: Path, require_tokens: bool) -> None:
    with (
        http_farm(tmp_path / "farm", require_tokens=require_tokens) as farm,
        signed_in(farm, token(farm)[0]) if require_tokens else nullcontext(farm.http) as browser,
    ):
        browser.headers.update({**HTML, "Origin": farm.url})
        with without_database(farm):
            page = browser.get("/devices?find=x")
            sent = browser.post("/alarms/1/clear", data={"reason": "r", "by": "ann"})
            for_programs = browser.get("/api/v1/devices")
        assert browser.get("/devices").status_code == 200
    for answer in (page, sent, for_programs):
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) >= 1
    assert "try again in a moment" in page.text
    assert '<meta http-equiv="refresh" content="30">' in page.text
    assert 'href=""' in page.text
    # To load the answer to a form again would be to ask for a page that is none.
    assert "try again in a moment" in sent.text
    assert "refresh" not in sent.text
    assert for_programs.headers["content-type"] == "application/problem+json"
