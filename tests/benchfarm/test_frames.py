"""Frames of the Python client: what they hold, and what other libraries make of them."""

import re
import sys
from datetime import UTC, datetime
from typing import Any

import pytest

from benchfarm import InvalidInput, SpeedupFrame
from benchfarm.frames.frame import ArrowColumns
from farm.core.base.ids import AttemptId
from farm.wire.documents.matrices.matrices import SpeedupView
from tests.benchfarm.conftest import MeasuredFarm


def every_frame(measured: MeasuredFarm) -> list[ArrowColumns]:
    farm, matrix = measured.farm, measured.finished
    return [
        farm.speedups(matrix=matrix),
        farm.results(matrix),
        farm.samples(matrix),
        farm.history(),
        farm.regressions(every=True),
        farm.speedups(matrix=measured.queued),
        SpeedupFrame([], as_of=datetime.now(UTC)),
    ]


def test_a_row_is_the_document_of_the_farm_and_a_column_has_its_unit(measured: MeasuredFarm) -> None:
    frame = measured.farm.speedups(matrix=measured.finished)
    assert all(isinstance(row, SpeedupView) for row in frame)
    for row, cells in zip(frame, frame.to_dicts(), strict=True):
        assert row.candidate_ns is not None
        assert cells["time_ms"] == row.candidate_ns / 1e6
        assert (cells["speedup"], cells["ci_low"], cells["verdict"]) == (row.speedup, row.ci_low, row.verdict)
        assert (cells["n"], cells["of"], cells["quality"]) == (5, 5, "all counted")
        assert cells["precision"] == "int8-core"
        assert cells["baseline_precision"] == "float32"
        assert cells["variant_digest"] != cells["baseline_variant_digest"]
        assert cells["as_of"] == frame.as_of
    assert measured.farm.speedups(at=datetime(2020, 1, 1, tzinfo=UTC)).as_of.year == 2020


def test_every_frame_has_quality_coverage_and_the_time_that_it_is_of(measured: MeasuredFarm) -> None:
    for frame in every_frame(measured):
        assert {"quality", "n", "of", "as_of"} <= set(frame.columns)


def test_samples_are_those_of_the_attempts(measured: MeasuredFarm) -> None:
    samples = measured.farm.samples(measured.finished)
    assert len(samples) == 20
    first = samples[0]
    reading = measured.farm.client.attempt(AttemptId(first.run.attempt_id)).reading
    assert reading is not None
    assert tuple(first.samples_ns) == reading.samples_ns
    rows = samples.to_dicts()
    assert len(rows) == samples.sample_count == sum(len(attempt.samples_ns) for attempt in samples)
    assert rows[0]["time_ms"] == reading.samples_ns[0] / 1e6
    assert [row["iteration"] for row in rows[:3]] == [0, 1, 2]
    one = measured.farm.samples(measured.finished, cell=first.cell.cell_id)
    assert {attempt.cell.cell_id for attempt in one} == {first.cell.cell_id}


def test_the_same_frame_in_arrow_polars_and_pandas(measured: MeasuredFarm) -> None:
    pytest.importorskip("arro3.core")
    pytest.importorskip("pyarrow")
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    for frame in every_frame(measured):
        expected = frame.to_dicts()
        assert frame.to_arrow().to_pylist() == expected
        assert frame.to_polars().to_dicts() == expected
        pandas = frame.to_pandas()
        assert list(pandas.columns) == list(frame.columns)
        for name in ("as_of", "n"):
            assert list(pandas[name]) == [row[name] for row in expected]


def test_without_arrow_rows_stay_and_frames_say_what_to_install(
    measured: MeasuredFarm, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing: Any = None
    monkeypatch.setitem(sys.modules, "arro3.core", missing)
    frame = measured.farm.speedups(matrix=measured.finished)
    assert frame.to_dicts()
    with pytest.raises(InvalidInput, match="arro3-core") as refused:
        frame.__arrow_c_stream__()
    assert refused.value.hint.startswith("pip install 'benchfarm[frames]'")


def test_the_plot_of_speedups_is_that_of_the_page(measured: MeasuredFarm) -> None:
    frame = measured.farm.speedups(matrix=measured.finished)
    page = measured.farm.client._get_text(f"{measured.farm.url}/speedups?matrix={measured.finished}")
    assert plots(frame._repr_html_()) == plots(page)
    assert len(plots(page)) == 2
    empty = SpeedupFrame([], as_of=frame.as_of)
    assert len(empty) == 0
    assert "No comparison is like that." in empty._repr_html_()


def plots(html: str) -> list[str]:
    return re.findall(r'<svg viewBox="0 0 420.*?</svg>', html, re.DOTALL)
