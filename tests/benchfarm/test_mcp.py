"""`farm mcp` as an assistant sees it: by the client of the protocol's own package, over stdio."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from farm.core.operations.role import Role
from farm.database.transaction import bind_tx
from farm.services.access.tokens import issue_access_token
from farm.wire.documents.access import AccessRequest
from tests.benchfarm.conftest import MeasuredFarm, log_in, revoke
from tests.support.farm.http_farm import HttpFarm, http_farm

LOOKS = {
    "explain_cell", "history", "list_devices", "list_matrices", "list_variants", "plan_matrix", "regressions",
    "show_attempt", "show_harness", "show_matrix", "speedups", "why_waiting",
}  # fmt: skip
CHANGES = {"cancel_matrix", "rerun_matrix", "submit_matrix"}
MATRIX = """
name: by an assistant
harness: speed_benchmark_torch
axes:
  model: mobilenet_v2
  precision: [float32, int8-core]
  format: torchscript
  backend: cpu
baseline: {precision: float32}
devices: [{device: virtual-1}]
rounds: 5
"""


def converse(
    url: str, *steps: tuple[str, Mapping[str, Any]] | Callable[[], object], token_file: Path | None = None
) -> tuple[set[str], list[Any]]:
    """Return the names of the tools, and the answer to each call: a document, or the text of an error.

    A step that is no call of a tool happens between two of them.
    """
    # Here: a worker that runs none of these tests does not load it.
    mcp = pytest.importorskip("mcp")

    async def talk() -> tuple[set[str], list[Any]]:
        parameters = mcp.StdioServerParameters(
            command=sys.executable,
            args=["-c", "from farm.cli.shell.main import main; main(['mcp'])"],
            env={**os.environ, "FARM_URL": url, "FARM_USER": "ann", "FARM_TOKEN_FILE": str(token_file or "")},
        )
        async with mcp.Client(parameters, read_timeout_seconds=60) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            answers = []
            for step in steps:
                if callable(step):
                    step()
                    continue
                name, arguments = step
                result = await client.call_tool(name, dict(arguments))
                answers.append(result.content[0].text if result.is_error else result.structured_content)
            return tools, answers

    return asyncio.run(talk())


@pytest.mark.long
def test_an_assistant_looks_plans_submits_and_cancels(measured: MeasuredFarm) -> None:
    number = measured.finished
    tools, answers = converse(
        measured.farm.url,
        ("list_devices", {}),
        ("speedups", {"matrix_id": number}),
        ("plan_matrix", {"matrix": MATRIX}),
        ("submit_matrix", {"matrix": MATRIX, "jobs": 9}),
        ("submit_matrix", {"matrix": MATRIX, "jobs": 10}),
        ("list_matrices", {"mine": True, "limit": 1}),
        ("cancel_matrix", {"matrix_id": number}),
        ("show_matrix", {"matrix_id": 999_999}),
        ("list_devices", {"limit": 1}),
        ("list_devices", {"limit": 1, "skip": 1}),
        ("list_devices", {"selector": "device:virtual-2"}),
        ("history", {"limit": 1, "points": 1}),
        ("speedups", {"limit": 501}),
        ("history", {"variant": "int8-crore"}),
        ("plan_matrix", {"matrix": f"{MATRIX}schedule: 0 2 * * *\n"}),
        ("submit_matrix", {"matrix": f"{MATRIX}schedule: 0 2 * * *\n", "jobs": 10}),
    )
    assert tools == LOOKS | CHANGES
    devices, speedups, plan, refused, submitted, mine, foreign, missing, *lists = answers
    assert [device["device_id"] for device in devices["devices"]] == ["virtual-1", "virtual-2"]
    assert [row["speedup"] for row in speedups["speedups"]] == [
        row.speedup for row in measured.farm.speedups(matrix=number)
    ]
    assert plan["jobs"] == 10
    assert "the plan has 10 jobs, not 9 (hint: call plan_matrix" in refused
    assert mine["matrices"][0]["matrix_id"] == submitted["matrix_id"]
    assert submitted["submitted_by"] == "ann"
    assert f"matrix {number} is of" in foreign
    assert "[not_found]" in missing
    first, second, selected, history, too_many, unknown, to_stand, not_submitted = lists
    assert [device["device_id"] for device in first["devices"] + second["devices"]] == [
        "virtual-1",
        "virtual-2",
    ]
    assert (devices["next_skip"], first["next_skip"], second["next_skip"]) == (None, 1, None)
    assert [device["device_id"] for device in selected["devices"]] == ["virtual-2"]
    (series,) = history["series"]
    assert (len(series["points"]), series["points_left_out"], history["next_skip"]) == (1, 1, 1)
    assert "500" in too_many
    assert unknown == "no series has `int8-crore` in its name (hint: did you mean `int8-core`?) [not_found]"
    assert to_stand["standing"]["missing"] == 2
    assert "`farm matrix stand FILE`" in not_submitted
    _, [cancelled, looked] = converse(
        measured.farm.url,
        ("cancel_matrix", {"matrix_id": submitted["matrix_id"]}),
        ("show_attempt", {"attempt_id": speedups_attempt(measured)}),
    )
    assert cancelled["is_done"]
    assert looked["outcome"] == "succeeded"


def test_a_viewer_has_only_tools_that_look_and_take_only_arguments_that_they_have(tmp_path: Path) -> None:
    secret = tmp_path / "token"
    with http_farm(tmp_path / "data", require_tokens=True) as farm:
        request = AccessRequest(name="eve", role=Role.VIEWER)
        made = farm.context.database.write(
            bind_tx(issue_access_token, now=farm.context.clock.now(), actor="user:test"), request
        )
        secret.write_text(made.token)
        secret.chmod(0o600)
        tools, [devices, *refused] = converse(
            farm.url,
            ("list_devices", {}),
            ("speedups", {"matrix": 1}),
            ("show_matrix", {"matrix_id": "first"}),
            ("show_harness", {}),
            token_file=secret,
        )
    assert tools == LOOKS
    assert [text.partition(" (hint: ")[0] for text in refused] == [
        "matrix: unknown key `matrix`",
        "matrix_id: must be a whole number",
        "name: is missing",
    ]
    assert all(text.endswith(" [input.invalid]") for text in refused)
    assert devices == {"devices": [], "next_skip": None}


@pytest.mark.long
def test_a_conversation_goes_on_after_a_login_in_place_of_a_revoked_token(guarded: HttpFarm) -> None:
    token = log_in(guarded, "ann")
    _, [before, refused, again, after] = converse(
        guarded.url,
        ("list_matrices", {}),
        lambda: revoke(guarded, token),
        ("list_matrices", {}),
        ("list_matrices", {}),
        lambda: log_in(guarded, "ann"),
        ("list_matrices", {}),
    )
    assert before == after == {"matrices": [], "next_skip": None}
    assert refused == again
    assert refused.startswith("the access token is unknown, too old or revoked (hint: ")
    assert refused.endswith(" [auth.invalid]")


def speedups_attempt(measured: MeasuredFarm) -> int:
    return measured.farm.samples(measured.finished)[0].run.attempt_id
