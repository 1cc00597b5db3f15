"""Roles and names of people whom an identity provider knows."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.errors import AuthError, Forbidden
from farm.core.operations.role import Role
from farm.core.operations.sign_in import identity_of, name_from, numbered, role_by_group, secure_address
from farm.core.programs.harness_name import HARNESS_NAME, own_name

ROLES = {"ml-ops": Role.OPERATOR, "ml": Role.SUBMITTER}


def role(groups: Any) -> Role:
    claims = {"sub": "1", "teams": groups}
    return identity_of(claims, issuer="https://sso.lab", groups_claim="teams", roles=ROLES).role


def test_groups_have_roles() -> None:
    assert role_by_group("ml-ops=operator, ml=submitter") == ROLES
    assert role_by_group("/lab/a=b=admin") == {"/lab/a=b": Role.ADMIN}


@pytest.mark.parametrize("text", ["", "ml", "ml=", "=viewer", "ml=king", "ml=agent", "ml=viewer,ml=admin"])
def test_a_group_without_a_role_of_people_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="one of viewer, submitter, operator, admin"):
        role_by_group(text)


@pytest.mark.parametrize("groups", [["ml", "ml-ops"], ["ml-ops", "ml"], "ml-ops", ["ml-ops", 7, None]])
def test_the_highest_role_counts_in_any_order(groups: Any) -> None:
    assert role(groups) is Role.OPERATOR


@pytest.mark.parametrize("groups", [None, [], ["ML"], {"ml": True}, 7, "ml ml-ops", [["ml"]]])
def test_no_group_has_no_role(groups: Any) -> None:
    with pytest.raises(Forbidden, match="the claim teams"):
        role(groups)


@pytest.mark.parametrize("subject", [None, "", 7, "a b", "x" * 256, "\x1b[2J", "é"])
def test_a_subject_that_cannot_be_recorded_is_refused(subject: Any) -> None:
    with pytest.raises(AuthError, match="no subject"):
        identity_of({"sub": subject, "groups": "ml"}, issuer="x", groups_claim="groups", roles=ROLES)


@pytest.mark.parametrize(
    ("claims", "name"),
    [
        ({"preferred_username": "Ann Smith"}, "ann-smith"),
        ({"preferred_username": "Jürgen"}, "jurgen"),
        ({"preferred_username": "ann/../ben"}, "ann-..-ben"),
        ({"preferred_username": "李", "email": "Li@lab.example"}, "li@lab.example"),
        ({"email": 7}, "sub-1"),
        ({"preferred_username": "x" * 300}, "x" * 56),
    ],
)
def test_a_claim_becomes_a_name(claims: dict[str, Any], name: str) -> None:
    claims |= {"sub": "SUB 1".replace(" ", "-"), "groups": ["ml"]}
    assert identity_of(claims, issuer="x", groups_claim="groups", roles=ROLES).called == name


@given(st.text(max_size=400))
def test_every_name_can_own_harnesses(claim: str) -> None:
    name = name_from(claim)
    if name:
        numbered_name = numbered(name, 1234567)
        assert len(numbered_name) <= 64
        assert re.fullmatch(HARNESS_NAME, str(own_name(numbered_name, "bench")))


@pytest.mark.parametrize(
    "url",
    [
        "",
        "sso.lab",
        "http://sso.lab",
        "ftp://sso.lab",
        "https://",
        "https://u:p@sso.lab",
        "https://a/#b",
        "https://a?b",
    ],
)
def test_an_insecure_issuer_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="https"):
        secure_address(url)


@pytest.mark.parametrize("url", ["https://sso.lab/realms/a", "http://127.0.0.1:8080", "http://localhost/x"])
def test_a_secure_issuer_is_taken_as_it_is(url: str) -> None:
    assert secure_address(url) == url
