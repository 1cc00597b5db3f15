"""Events and alarms since a time, and what a page without any says."""

import re
from datetime import datetime

import pytest

from farm.web.http.templates import TEMPLATES
from tests.web.conftest import PageFarm, words_of


def test_events_are_those_since_a_time(pages: PageFarm) -> None:
    page = "/events?kind=matrix_submitted"
    (newest, middle, oldest) = re.findall(r'<time datetime="([^"]*)">', pages.http.get(page).text)
    first, second = datetime.fromisoformat(oldest), datetime.fromisoformat(middle)
    between = first + (second - first) / 2
    answer = pages.http.get(page, params={"kind": "matrix_submitted", "since": between.isoformat()})
    assert re.findall(r'<time datetime="([^"]*)">', answer.text) == [newest, middle]


def test_alarms_are_those_since_a_time(pages: PageFarm) -> None:
    assert "open for" in words_of(pages.http.get("/alarms?since=2020-01-01"))
    for path in ("/alarms?since=1h", "/alarms?since=1h&cleared=true"):
        assert "No alarm matches. Fewer filters show more." in words_of(pages.http.get(path))


@pytest.mark.parametrize(
    ("is_of_all", "words"), [(False, "No alarm is open."), (True, "No alarm was raised yet.")]
)
def test_a_farm_without_alarms_says_which_ones_it_has_none_of(is_of_all: bool, words: str) -> None:
    template = TEMPLATES.get_template("operations/alarms/rows.html")
    assert words in template.render(alarms=[], cleared=is_of_all, since="")
