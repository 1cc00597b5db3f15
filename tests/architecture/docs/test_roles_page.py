"""Who may call what: each route says, and docs/roles.md is drawn from that (BENCHFARM_DRAW=1 draws it)."""

import os
from pathlib import Path

import pytest

from farm.api.app import ROUTERS, create_app
from farm.api.http.openapi import roles_by_route
from farm.clock import SystemClock
from farm.config import FarmConfig
from farm.core.operations.role import ROLES_BY_RANK, Role, is_permitted

PAGE = Path(__file__).resolve().parents[3] / "docs" / "roles.md"
MARK = "<!-- What follows is drawn from the routes. -->\n"
#: Whoever asks: whether the farm is well, and to be let in by a join token or by an identity provider.
OPEN_TO_ALL = {
    ("GET", "/api/v1/health"),
    ("POST", "/api/v1/agent/enroll"),
    ("POST", "/api/v1/sign-in/device"),
    ("POST", "/api/v1/sign-in/device/token"),
}

roles = roles_by_route(ROUTERS)


def test_every_call_but_these_names_who_may_make_it() -> None:
    assert {call for call, needed in roles.items() if not needed} == OPEN_TO_ALL


def test_no_route_is_served_that_is_not_looked_at_here(tmp_path: Path) -> None:
    document = create_app(FarmConfig(data_dir=tmp_path), SystemClock()).openapi()
    served = {
        (method.upper(), path)
        for path, calls in document["paths"].items()
        for method in calls
        if method in ("get", "head", "post", "put", "patch", "delete")
    }
    assert served == set(roles)


def test_looking_takes_no_more_than_a_viewer_and_changing_takes_more() -> None:
    for (method, path), needed in roles.items():
        if not needed or path.startswith("/api/v1/agent/"):
            continue
        # Who ends a sign-in gives up what is their own.
        is_look = method in ("GET", "HEAD") or path.endswith(("/plan", "/sign-in"))
        # Where adb reaches a phone is a way in, not a look.
        assert (needed[0] is Role.VIEWER) == (is_look and not path.endswith("/adb")), path


def test_a_host_gets_at_its_own_conversation_and_files_and_nothing_else() -> None:
    reached = {path for (_, path), needed in roles.items() if Role.AGENT in needed}
    assert {path for path in reached if not path.startswith("/api/v1/agent/")} == {"/api/v1/blobs/{digest}"}
    assert not any(is_permitted(Role.AGENT, role) for role in ROLES_BY_RANK)


@pytest.mark.parametrize("role", ROLES_BY_RANK)
def test_each_role_may_what_those_before_it_may(role: Role) -> None:
    assert [is_permitted(role, other) for other in ROLES_BY_RANK] == [
        ROLES_BY_RANK.index(other) <= ROLES_BY_RANK.index(role) for other in ROLES_BY_RANK
    ]
    assert not is_permitted(role, Role.AGENT)


def table() -> str:
    columns = [*ROLES_BY_RANK, Role.AGENT]
    lines = [f"| call | {' | '.join(columns)} |", f"| --- |{' :-: |' * len(columns)}"]
    for (method, path), needed in sorted(roles.items(), key=lambda each: (each[0][1], each[0][0])):
        marks = [
            "x" if not needed or any(is_permitted(role, one) for one in needed) else "" for role in columns
        ]
        lines.append(f"| `{method} {path.removeprefix('/api/v1')}` | {' | '.join(marks)} |")
    return "\n".join(lines) + "\n"


def test_the_page_of_roles_shows_what_the_routes_ask_for() -> None:
    prose, _, drawn = PAGE.read_text(encoding="utf-8").partition(MARK)
    if os.environ.get("BENCHFARM_DRAW"):
        drawn = f"\n{table()}"
        PAGE.write_text(f"{prose}{MARK}{drawn}", encoding="utf-8")
    assert drawn == f"\n{table()}"
