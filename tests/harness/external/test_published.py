"""Tables of numbers that others published: those of these tests are made up."""

import importlib.util
import json
from datetime import UTC, datetime
from pathlib import Path
from types import ModuleType

import pytest

from farm.core.errors import InvalidInput
from farm.harness.external.recognition import read_external_file
from farm.harness.external.results import ExternalResult, ImportFormat, Statistic
from farm.wire.documents.results.imports import ExternalResultView
from tests.harness.external.samples import PUBLISHED

EXAMPLES = Path(__file__).parents[3] / "examples" / "mobilenet_v2"


def results(text: str) -> tuple[ExternalResult, ...]:
    return read_external_file(text.encode()).results


def replay_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("replay_example", EXAMPLES / "replay.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def viewed(number: int, result: ExternalResult) -> ExternalResultView:
    """As the farm answers it."""
    told = {name: getattr(result, name) for name in ExternalResultView.model_fields if hasattr(result, name)}
    return ExternalResultView.model_construct(
        **told | {"settings": json.dumps(dict(result.settings)), "samples": None},
        result_id=number,
        import_id=1,
        file="published.csv",
        format=ImportFormat.PUBLISHED,
        imported_at=datetime(2026, 1, 1, tzinfo=UTC),
        imported_by="ann",
        withdrawn_at=None,
    )


def test_a_row_is_kept_as_it_was_published() -> None:
    first, second, *_ = results(PUBLISHED)
    assert (first.device, first.os, first.value, first.unit) == ("Phone B", None, 3000, "us")
    assert first.settings == {"precision": "int8-full", "source": "https://example.com/b"}
    assert (second.backend, second.metric, second.statistic) == ("nnapi", "inference", Statistic.VALUE)
    assert second.settings == {
        "precision": "int8-full",
        "chip": "Chip 1",
        "threads": "1",
        "source": "https://example.com/a",
    }


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("5,ms", "5 ms,ms", "line 3: '5 ms' is no time"),
        ("5,ms", "1.234,5 ms", "line 3: the unit is '5 ms'"),
        ("5,ms", '"1,5",ms', "'1,5' is no time"),
        ("5,ms", "inf,ms", "'inf' is no time"),
        ("5,ms", "0.0,ms", "'0.0' is no time"),
        ("5,ms", ",ms", "line 3 has no value"),
        ("https://example.com/a,1\n", ",1\n", "line 3 has no source"),
        ("https://example.com/a,1\n", "https://example.com/a,1,2\n", "another number of cells"),
        ("https://example.com/a,1\n", "https://example.com/a\n", "another number of cells"),
        (",threads", ",speedup", "its first line has speedup"),
        (",threads", ",source", "a name twice"),
        ("10,ms", '"10,ms', "is no row"),
    ],
)
def test_a_table_with_a_mistake_is_refused_and_the_line_named(before: str, after: str, said: str) -> None:
    assert before in PUBLISHED
    with pytest.raises(InvalidInput, match=said):
        results(PUBLISHED.replace(before, after, 1))


def test_a_statistic_is_one_of_the_farms_words() -> None:
    text = PUBLISHED.replace(",threads", ",statistic").replace(",1\n", ",median\n")
    assert [result.statistic for result in results(text)] == ["value", "median", "median", "median"]
    with pytest.raises(InvalidInput, match="the statistic is 'mode'"):
        results(text.replace("median", "mode"))


def test_the_replay_labels_the_table_of_each_phone_and_compares_within_it() -> None:
    views = [viewed(number, result) for number, result in enumerate(results(PUBLISHED))]
    one, other = replay_example().replay(views).split("\n\n")
    head, _, *lines = one.splitlines()
    assert head == "replay: Phone A, Android 12, Chip 1: mobilenet_v2, as published"
    assert [line.split()[:-1] for line in lines] == [
        ["float32", "cpu", "20", "ms"],
        ["int8-full", "cpu", "10", "ms", "2.00x"],
        ["int8-full", "nnapi", "5", "ms", "4.00x"],
    ]
    assert other.startswith("replay: Phone B: ")
    assert "3000 us" in other
    assert "x " not in other.splitlines()[-1]


def test_figures_of_another_format_are_no_replay() -> None:
    view = viewed(1, results(PUBLISHED)[0])
    assert replay_example().replay([view.model_copy(update={"format": "log"})]) == ""


def test_each_figure_of_the_example_names_where_it_was_published() -> None:
    found = results((EXAMPLES / "published.csv").read_text())
    assert len(found) == 3
    assert all(str(result.settings["source"]).startswith("https://github.com/") for result in found)
    assert {result.model for result in found} == {replay_example().MODEL}
