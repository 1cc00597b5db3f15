"""What commands, JSON and pages say of a job whose report exceeded the budget of parsing."""

import html
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from farm.cli.shell.main import main
from farm.services.results.parse import UNPARSED, JobContexts, parsed_report, report_subjects, unparsed
from farm.services.results.settle import settle_reports
from tests.services.results.settle.test_settle_batch import hosted
from tests.services.results.test_parse import came
from tests.support.farm.http_farm import HttpFarm, http_farm
from tests.support.farm.service_fixture import FarmRig

_REASON = "parsing took more than 10 s of CPU time"
_SAID = (
    f"unparsed: {_REASON} (the report is kept: have the program print less, or simplify the patterns of its"
    " definition; after an upgrade of the farm, `farm reparse` parses it again)"
)


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A served farm, with a job and its attempt that ended with such a report."""

    farm: HttpFarm
    job_id: int
    attempt_id: int


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Unparsed]:
    monkeypatch.setenv("FARM_USER", "anna")
    rig = FarmRig(tmp_path / "data")
    host = hosted(rig, 1)
    (assignment,) = host.exchange().assignments
    report = came(host, "good", assignment)
    (subject,) = rig.read(report_subjects, [report], JobContexts())
    assert subject is not None
    rig.write(settle_reports, [parsed_report(report, unparsed(subject, _REASON))])
    rig.close()
    with http_farm(tmp_path / "data") as farm:
        monkeypatch.setenv("FARM_URL", farm.url)
        yield Unparsed(farm, subject.job.job_id, report.attempt_id)


def output(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    with pytest.raises(SystemExit) as left:
        main(words)
    assert int(left.value.code or 0) == 0
    return " ".join(capsys.readouterr().out.split())


def test_the_commands_name_the_budget_and_what_to_do(
    ended: Unparsed, capsys: pytest.CaptureFixture[str]
) -> None:
    why = output(capsys, "job", "why", str(ended.job_id))
    assert why.startswith(f"job {ended.job_id} on phone-0 is finished: failed")
    assert why.endswith(_SAID)
    shown = output(capsys, "job", "show", str(ended.job_id))
    assert f"{_SAID} [{UNPARSED}]" in shown
    assert f"{_SAID} [{UNPARSED}]" in output(capsys, "attempt", "show", str(ended.attempt_id))


def test_json_has_the_code_and_the_same_message(ended: Unparsed, capsys: pytest.CaptureFixture[str]) -> None:
    shown = json.loads(output(capsys, "job", "show", str(ended.job_id), "--json"))
    (attempt,) = shown["attempt_list"]
    for view in (shown, attempt):
        assert (view["outcome"], view["code"], view["message"]) == ("failed", UNPARSED, _SAID)
    why = json.loads(output(capsys, "job", "why", str(ended.job_id), "--json"))
    assert (why["state"], why["outcome"], why["cause"]) == ("finished", "failed", _SAID)


def test_the_pages_say_the_same(ended: Unparsed) -> None:
    assert f"{_SAID} [{UNPARSED}]" in _page(ended, f"/attempts/{ended.attempt_id}")
    assert f"failed: {_SAID}" in _page(ended, "/matrices/1")


def _page(ended: Unparsed, path: str) -> str:
    # What stands between backticks in a message is code on a page.
    return re.sub("</?code>", "`", html.unescape(ended.farm.http.get(path).text))
