"""A question has the same answer in the terminal, as JSON, on the page and in Python, to the last digit."""

import json
from collections.abc import Callable

import httpx
import pytest

from benchfarm import Farm
from farm.cli.shell.main import main
from tests.web.questions.questions import QUESTIONS, Question
from tests.web.questions.reading import read_page

EACH = pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)


@pytest.fixture
def farm(
    answering: httpx.Client, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., str]:
    monkeypatch.setenv("FARM_URL", str(answering.base_url))
    # Nothing is wrapped.
    monkeypatch.setenv("COLUMNS", "400")

    def run(*words: str) -> str:
        with pytest.raises(SystemExit) as end:
            main(words)
        output = capsys.readouterr()
        assert not end.value.code, output.err
        return output.out

    return run


def test_there_are_more_than_twenty_questions() -> None:
    assert len({question.text for question in QUESTIONS}) == len(QUESTIONS) > 20


@EACH
def test_page_command_and_client_give_the_same_answer(
    answering: httpx.Client, farm: Callable[..., str], question: Question
) -> None:
    answer = question.in_json(json.loads(farm(*question.command.split(), "--json")))
    assert answer
    page = answering.get(question.path)
    assert page.status_code == 200, page.text
    assert question.on_page(read_page(page.text)) == answer
    with Farm(str(answering.base_url)) as client:
        assert question.in_python(client) == answer
    if question.in_table:
        assert answer in farm(*question.command.split())
