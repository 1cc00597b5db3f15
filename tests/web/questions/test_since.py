"""Events and alarms since a time, and what a page without any says."""

import re
from datetime import datetime

import pytest

from tests.web.conftest import PageFarm
from tests.web.test_pages import words_of


def test_events_are_those_since_a_time(pages: PageFarm) -> None:
    page = "/events?kind=matrix_submitted"
    (newest, middle, oldest) = re.findall(r'<time datetime="([^"]*)">', pages.http.get(page).text)
    first, second = datetime.fromisoformat(oldest), datetime.fromisoformat(middle)
    between = first + (second - first) / 2
    answer = pages.http.get(page, params={"kind": "matrix_submitted", "since": between.isoformat()})
    assert re.findall(r'<time datetime="([^"]*)">', answer.text) == [newest, middle]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("", "No alarm is open."),
        ("cleared=true", "No alarm was raised yet."),
        ("since=1h", "No alarm is like that. Fewer filters show more."),
        ("since=1h&cleared=true", "No alarm is like that. Fewer filters show more."),
    ],
)
def test_a_page_without_alarms_says_which_ones_there_are_none_of(
    pages: PageFarm, query: str, words: str
) -> None:
    assert words in words_of(pages.http.get(f"/alarms?{query}"))
