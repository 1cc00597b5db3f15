"""A report is one file that needs nothing else, and says what the pages say."""

import base64
import hashlib
import re
from pathlib import Path

import pytest

from farm.core.base.units import ratio_text
from tests.cli.run.test_run import run
from tests.web.conftest import HOSTILE, PageFarm, parsed, words_of


def test_a_report_has_all_that_it_shows(pages: PageFarm) -> None:
    answer = pages.http.get(f"/reports/matrices/{pages.finished}")
    assert answer.status_code == 200
    assert answer.headers["content-disposition"] == 'attachment; filename="matrix-1.html"'
    # Nothing is fetched: the address of the farm is that of links only.
    assert re.findall(r"<(?:script|link|img|iframe)\b|\bsrc=|url\(", answer.text) == []
    assert f'<base href="{pages.url}/">' in answer.text
    words = words_of(answer)
    views = pages.http.get("/api/v1/speedups", params={"matrix_id": pages.finished}).json()
    assert all(ratio_text(view["speedup"]) in words for view in views)
    assert "two precisions" in words


def test_the_policy_lets_the_style_of_the_report_in_and_nothing_else(pages: PageFarm) -> None:
    answer = pages.http.get(f"/reports/matrices/{pages.finished}")
    (style,) = re.findall(r"<style>(.*?)</style>", answer.text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert f"style-src 'sha256-{digest}'" in answer.headers["content-security-policy"]


def test_text_of_people_is_escaped_in_reports(pages: PageFarm) -> None:
    answer = pages.http.get(f"/reports/matrices/{pages.broken}")
    assert "<script>alert" not in answer.text
    assert HOSTILE in "".join(parsed(answer.text).text)


def test_the_command_writes_the_file(
    pages: PageFarm, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FARM_URL", pages.url)
    out = tmp_path / "report.html"
    assert run("report", "matrix", "1", "--out", str(out)) == 0
    assert out.read_text().startswith("<!doctype html>")
    assert "Any browser shows it." in capsys.readouterr().err
    assert run("report", "matrix", "99", "--out", str(out)) != 0
    assert "there is no matrix 99" in capsys.readouterr().err
    assert run("report", "matrix", "1", "--out", str(tmp_path)) != 0
    assert "cannot be written" in capsys.readouterr().err
