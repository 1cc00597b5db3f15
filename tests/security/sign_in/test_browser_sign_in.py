"""Signing in on the pages by an identity provider: who gets in, as whom, and who does not."""

import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
import sqlalchemy as sa

from farm.client.certificates import trusted_certificates
from farm.core.operations.role import Role
from farm.core.operations.sign_in import Identity
from farm.database.tables import access_tokens
from farm.database.transaction import bind_tx
from farm.services.access.people import sign_in_person
from farm.web.http.sign_in import COOKIE
from tests.security.sign_in.mock_provider import mock_provider
from tests.security.sign_in.provider import CLIENT, ROLES, SECRET, Provider, new_key
from tests.support.farm.http_farm import HttpFarm, http_farm

HTML = {"Accept": "text/html"}


@pytest.fixture
def browser(farm: HttpFarm) -> Iterator[httpx.Client]:
    with new_browser(farm) as browser:
        yield browser


def new_browser(farm: HttpFarm) -> httpx.Client:
    certificates = trusted_certificates(farm.url)
    return httpx.Client(base_url=farm.url, verify=certificates, trust_env=False, headers=HTML, timeout=30)


def callback(browser: httpx.Client, next_path: str = "/devices") -> str:
    """Where the provider sends the browser back to."""
    there = browser.get("/login/oidc", params={"next": next_path})
    assert there.status_code == 303, there.text
    location = there.headers["location"]
    back = httpx.get(location, verify=trusted_certificates(location), trust_env=False)
    return str(back.headers["location"])


def tokens(farm: HttpFarm) -> list[sa.Row[tuple[str, ...]]]:
    with farm.context.database.engine.connect() as connection:
        return list(connection.execute(sa.select(access_tokens)).all())


def refused(farm: HttpFarm, browser: httpx.Client, *words: str, status: int = 403) -> None:
    """A sign-in is refused with these words, and leaves nothing behind."""
    answer = browser.get(callback(browser))
    assert answer.status_code == status, answer.text
    for word in words:
        assert word in answer.text
    assert 'name="token"' in answer.text
    assert COOKIE not in browser.cookies
    assert tokens(farm) == []


def test_a_person_signs_in_with_the_role_of_their_group(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    assert provider.asked == []
    form = browser.get("/login?next=/devices")
    assert f"Sign in with {provider.url.removeprefix('http://')}" in form.text
    assert "/login/oidc?next=%2Fdevices" in form.text
    assert provider.asked == []
    answer = browser.get(callback(browser, "/devices?find=x"))
    assert answer.status_code == 200
    assert "You are ann, submitter." in answer.text
    assert 'content="0; url=/devices?find=x"' in answer.text
    session = next(text for text in answer.headers.get_list("set-cookie") if COOKIE in text)
    assert "HttpOnly" in session
    assert "samesite=strict" in session.lower()
    assert "ann, submitter" in browser.get("/devices").text
    assert browser.get("/api/v1/caller").json()["role"] == "submitter"
    (token,) = tokens(farm)
    assert token.created_by == f"oidc:{provider.url}#248"
    assert (token.expires_at - token.created_at).total_seconds() == 12 * 3600


def test_groups_that_the_id_token_has_not_come_from_the_userinfo(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    provider.claims["groups"] = None
    # Who the person is, the ID token says.
    provider.userinfo = {"sub": "248", "groups": ["ml-ops"], "preferred_username": "root"}
    assert "You are ann, operator." in browser.get(callback(browser)).text


def test_an_id_token_with_groups_is_asked_for_nothing_more(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    provider.userinfo = {"sub": "248", "groups": ["ml-ops"]}
    assert "You are ann, submitter." in browser.get(callback(browser)).text
    assert "userinfo" not in provider.asked


@pytest.mark.parametrize(
    ("userinfo", "words", "status"),
    [
        ({"sub": "249", "groups": ["ml-ops"]}, "someone else", 403),
        ({"groups": ["ml-ops"]}, "someone else", 403),
        ({"sub": "248"}, "has no group, or is missing", 403),
        ({"sub": "248", "error": "insufficient_scope"}, "insufficient_scope", 500),
    ],
)
def test_a_userinfo_of_someone_else_or_without_groups_lets_no_one_in(
    farm: HttpFarm,
    browser: httpx.Client,
    provider: Provider,
    userinfo: dict[str, object],
    words: str,
    status: int,
) -> None:
    provider.claims["groups"] = None
    provider.userinfo = userinfo
    refused(farm, browser, words, status=status)


def test_a_revoked_token_ends_the_session(farm: HttpFarm, browser: httpx.Client) -> None:
    browser.get(callback(browser))
    (token,) = tokens(farm)
    bearer = {"Authorization": f"Bearer {farm.access_token('admin', 'root')}"}
    path = f"/api/v1/access-tokens/{token.token_hash[:12]}"
    assert farm.http.delete(path, headers=bearer).status_code == 200
    assert browser.get("/devices").status_code == 303


def test_signing_out_revokes_the_token_of_the_sign_in(farm: HttpFarm, browser: httpx.Client) -> None:
    browser.get(callback(browser))
    assert browser.post("/logout").status_code == 303
    (token,) = tokens(farm)
    assert token.revoked_at is not None
    bearer = {"Authorization": f"Bearer {farm.access_token('admin', 'root')}"}
    events = farm.http.get("/api/v1/events", params={"kind": "access_token_revoked"}, headers=bearer).json()
    assert [event["actor"] for event in events["events"]] == ["user:ann"]


def test_signing_out_leaves_a_token_that_the_person_has_themselves(
    farm: HttpFarm, browser: httpx.Client
) -> None:
    ann = Identity(issuer="https://idp.example", subject="1", called="ann", role=Role.SUBMITTER)
    own = farm.context.database.write(bind_tx(sign_in_person, now=farm.context.clock.now()), ann)
    assert browser.post("/login", data={"token": own.token}).status_code == 303
    assert browser.post("/logout").status_code == 303
    (token,) = tokens(farm)
    assert token.revoked_at is None


def test_the_highest_role_counts(browser: httpx.Client, provider: Provider) -> None:
    provider.claims["groups"] = ["everyone", "ml-ops", "ml", "unknown"]
    assert "You are ann, operator." in browser.get(callback(browser)).text


@pytest.mark.parametrize(
    ("groups", "said"),
    [(["sales"], "the claim groups has sales"), (None, "is missing"), ([], "has no group")],
)
def test_who_has_no_group_learns_which_claim_was_read(
    farm: HttpFarm, browser: httpx.Client, provider: Provider, groups: list[str] | None, said: str
) -> None:
    provider.claims["groups"] = groups
    refused(farm, browser, "has a role on this farm", said, "FARM_OIDC_ROLES")
    admin = {"Authorization": f"Bearer {farm.access_token('admin', 'root')}"}
    events = farm.http.get("/api/v1/events", params={"kind": "access_refused"}, headers=admin).text
    assert "the claim groups" in events


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ({"aud": "another-client"}, "Audience"),
        ({"aud": ["benchfarm", "another"]}, "another client"),
        ({"aud": ["benchfarm", "another"], "azp": "another"}, "another client"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"nonce": "guessed"}, "nonce differs"),
        ({"nonce": None}, "nonce differs"),
        ({"exp": int(time.time()) - 120}, "not of this time"),
        ({"exp": None}, "exp"),
        ({"iat": int(time.time()) + 3600, "exp": int(time.time()) + 7200}, "compare the clocks"),
        ({"sub": "a b"}, "no subject"),
        ({"sub": None}, "sub"),
    ],
)
def test_an_id_token_that_is_not_for_this_sign_in_lets_no_one_in(
    farm: HttpFarm, browser: httpx.Client, provider: Provider, claims: dict[str, object], said: str
) -> None:
    provider.claims |= claims
    refused(farm, browser, said)


def test_clocks_may_be_a_few_seconds_apart(browser: httpx.Client, provider: Provider) -> None:
    provider.claims |= {"iat": int(time.time()) + 30, "exp": int(time.time()) - 30}
    assert "You are ann" in browser.get(callback(browser)).text


def test_a_forged_signature_lets_no_one_in(farm: HttpFarm, browser: httpx.Client, provider: Provider) -> None:
    provider.signing_key = new_key()
    refused(farm, browser, "Signature verification failed")


@pytest.mark.parametrize("algorithm", ["HS256", "none"])
def test_a_token_that_anyone_could_sign_lets_no_one_in_though_the_provider_announces_it(
    farm: HttpFarm, browser: httpx.Client, provider: Provider, algorithm: str
) -> None:
    provider.algorithm = algorithm
    provider.signing_key = "" if algorithm == "none" else "k" * 64
    refused(farm, browser, "which this farm refuses", status=500)


def test_a_signature_that_the_provider_does_not_announce_is_refused(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    provider.algorithm = "RS512"
    refused(farm, browser, "which this farm refuses", status=500)


def test_keys_are_asked_for_once_and_again_when_they_change(farm: HttpFarm, provider: Provider) -> None:
    for _ in range(2):
        with new_browser(farm) as browser:
            assert "You are ann" in browser.get(callback(browser)).text
    assert provider.asked == ["discovery", "keys"]
    provider.key, provider.kid = new_key(), "second"
    with new_browser(farm) as browser:
        assert "You are ann" in browser.get(callback(browser)).text
    assert provider.asked == ["discovery", "keys"] * 2


def test_a_key_that_is_not_published_is_not_trusted(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    assert browser.get(callback(browser)).status_code == 200
    before, provider.metadata = provider.key, {"jwks_uri": f"{provider.url}/none"}
    provider.signing_key, provider.kid = before, "unpublished"
    with new_browser(farm) as other:
        assert other.get(callback(other)).status_code == 500
        assert COOKIE not in other.cookies


def test_a_callback_works_once_and_in_its_own_browser_only(farm: HttpFarm, browser: httpx.Client) -> None:
    url = callback(browser)
    with new_browser(farm) as thief:
        assert "began no such sign-in" in thief.get(url).text
        callback(thief)
        assert "began no such sign-in" in thief.get(url).text
        assert COOKIE not in thief.cookies
    kept = dict(browser.cookies)
    assert browser.get(url).status_code == 200
    replayed = browser.get(url)
    assert (replayed.status_code, len(tokens(farm))) == (403, 1)
    assert "began no such sign-in" in replayed.text
    # And with a copy of the cookie, the provider takes no code twice.
    with new_browser(farm) as copy:
        copy.cookies.update(kept)
        assert "has expired or was used" in copy.get(url).text
        assert COOKIE not in copy.cookies


def test_a_state_that_is_not_the_browsers_is_refused_before_the_provider_is_asked(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    url = callback(browser)
    state = parse_qs(urlsplit(url).query)["state"][0]
    for wrong in ("", "x", "\u00e9", state[:-1]):
        assert browser.get(url.replace(state, wrong)).status_code == 403
        browser.get("/login/oidc")
    assert "code-0" in provider.codes


def test_what_the_provider_refuses_is_told_and_leaves_nothing(farm: HttpFarm, browser: httpx.Client) -> None:
    state = parse_qs(urlsplit(callback(browser)).query)["state"][0]
    answer = browser.get("/login/oidc/callback", params={"state": state, "error": "access_denied"})
    assert answer.status_code == 403
    assert "access_denied" in answer.text
    assert tokens(farm) == []
    assert browser.cookies == {}


@pytest.mark.parametrize("target", ["https://evil.example/", "//evil.example/", "/\\evil.example"])
def test_a_sign_in_leads_to_pages_of_this_farm_only(browser: httpx.Client, target: str) -> None:
    answer = browser.get(callback(browser, target))
    assert 'content="0; url=/"' in answer.text
    assert "evil" not in answer.text


def test_a_secret_that_the_provider_does_not_know_is_the_farms_fault(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    provider.client_secret = None
    refused(farm, browser, "invalid_client", "FARM_OIDC_", status=500)


def test_a_provider_that_is_down_stops_no_token_and_is_back_at_once(
    farm: HttpFarm, browser: httpx.Client, provider: Provider
) -> None:
    provider.is_down = True
    answer = browser.get("/login/oidc")
    assert answer.status_code == 503
    assert "an access token works without the provider" in answer.text
    assert browser.cookies == {}
    secret = farm.access_token("viewer", "ben")
    with new_browser(farm) as other:
        assert other.post("/login", data={"token": secret}).status_code == 303
    provider.is_down = False
    assert "You are ann" in browser.get(callback(browser)).text


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        ({"issuer": "https://sso.example"}, "calls itself"),
        ({"token_endpoint": "http://sso.example/token"}, "no usable token_endpoint"),
        ({"jwks_uri": None}, "no usable jwks_uri"),
        ({"padding": "x" * 300_000}, "bytes"),
    ],
)
def test_a_provider_that_says_what_cannot_be_used_is_refused(
    browser: httpx.Client, provider: Provider, metadata: dict[str, str], said: str
) -> None:
    provider.metadata = metadata
    answer = browser.get("/login/oidc")
    if answer.status_code == 303:
        answer = browser.get(callback(browser))
    assert answer.status_code == 500
    assert said in answer.text


def test_a_farm_without_a_provider_offers_none(tmp_path: Path) -> None:
    with http_farm(tmp_path, require_tokens=True) as farm:
        assert "Sign in with" not in farm.http.get("/login", headers=HTML).text
        assert farm.http.get("/login/oidc", headers=HTML).status_code == 404
        assert farm.http.get("/login/oidc/callback?code=x", headers=HTML).status_code == 404
        assert farm.http.post("/api/v1/sign-in/device").status_code == 404


@pytest.mark.parametrize("way", ["public", "client_secret_post"])
def test_a_farm_may_be_a_public_client_or_send_its_secret_in_the_form(
    tmp_path: Path, provider: Provider, way: str
) -> None:
    secret = tmp_path / "secret"
    secret.write_text(SECRET)
    provider.metadata = {"token_endpoint_auth_methods_supported": [way]}
    if way == "public":
        provider.client_secret = None
    with (
        http_farm(
            tmp_path / "farm",
            require_tokens=True,
            oidc_issuer=provider.url,
            oidc_client_id=CLIENT,
            oidc_client_secret_file=None if way == "public" else secret,
            oidc_roles=ROLES,
        ) as farm,
        new_browser(farm) as browser,
    ):
        assert "You are ann" in browser.get(callback(browser)).text


def test_people_of_a_provider_from_the_package_index_sign_in(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("it takes any")
    with (
        mock_provider(tmp_path / "log") as issuer,
        http_farm(
            tmp_path / "farm",
            require_tokens=True,
            oidc_issuer=issuer,
            oidc_client_id=CLIENT,
            oidc_client_secret_file=tmp_path / "secret",
            oidc_roles="ml-ops=operator",
            oidc_scopes="openid profile",
        ) as farm,
        new_browser(farm) as browser,
    ):
        claims = {"preferred_username": "Ann Smith", "groups": ["ml-ops"]}
        httpx.put(f"{issuer}/users/7", json=claims, trust_env=False).raise_for_status()
        there = browser.get("/login/oidc?next=/hosts").headers["location"]
        back = httpx.post(there, data={"sub": "7"}, trust_env=False).headers["location"]
        answer = browser.get(back)
        assert "You are ann-smith, operator." in answer.text
        assert browser.get("/hosts").status_code == 200
        httpx.put(f"{issuer}/users/8", json={"groups": []}, trust_env=False).raise_for_status()
        there = browser.get("/login/oidc").headers["location"]
        back = httpx.post(there, data={"sub": "8"}, trust_env=False).headers["location"]
        assert "has a role on this farm" in browser.get(back).text
        there = browser.get("/login/oidc").headers["location"]
        denied = httpx.post(there, data={"action": "deny"}, trust_env=False).headers["location"]
        # It leaves the state out, so that the farm cannot know whose refusal it is.
        assert browser.get(denied).status_code == 403
