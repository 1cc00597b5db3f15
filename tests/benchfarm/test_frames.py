"""Frames of the Python client: what they hold, and what other libraries make of them."""

import re
import sys
from datetime import UTC, datetime
from html import escape
from typing import Any

import pytest

from benchfarm import DeviceFrame, InvalidInput, SpeedupFrame
from benchfarm.frames.frame import ArrowColumns
from farm.core.base.ids import AttemptId
from farm.wire.documents.results.speedups import SpeedupView
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


def test_devices_are_a_frame_and_a_table_of_a_notebook(measured: MeasuredFarm) -> None:
    devices = measured.farm.devices()
    rows = devices.to_dicts()
    assert [row["device_id"] for row in rows] == ["virtual-1", "virtual-2"]
    assert {row["as_of"] for row in rows} == {devices.as_of}
    assert [row["free"] for row in rows] == [not view.blocked_by for view in devices]
    for view in devices:
        assert f"<td>{escape(view.name)}</td>" in devices._repr_html_()
    assert "2 devices, as of" in devices._repr_html_()
    hostile = [devices[0].model_copy(update={"device_model": "<script>"})]
    assert "<script>" not in DeviceFrame(hostile, as_of=devices.as_of)._repr_html_()


def test_a_run_shows_its_progress_and_its_page_in_a_notebook(measured: MeasuredFarm) -> None:
    run = measured.farm.matrix(measured.finished)
    html = run._repr_html_()
    # In the colour of its text: a browser's own blue cannot be read on a dark notebook.
    assert f'<a href="{run.url}" style="color: inherit">Run {run.id} ({run.name})</a>' in html
    assert html.count("<progress") == len(run.view.progress) == 2


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


def test_a_history_has_the_setups_of_the_comparison_as_fields(measured: MeasuredFarm) -> None:
    setup = ("harness", "model", "variant", "precision", "format", "memory_format", "target", "backend")
    names = [f"{prefix}{name}" for prefix in ("", "baseline_") for name in (*setup, "settings")]
    names += [
        f"{prefix}{name}" for prefix in ("", "baseline_") for name in ("variant_digest", "program_digest")
    ]
    compared = {row["cell_id"]: row for row in measured.farm.speedups(matrix=measured.finished).to_dicts()}
    sessions = [row for row in measured.farm.history().to_dicts() if row["cell_id"] in compared]
    assert {row["cell_id"] for row in sessions} == compared.keys()
    for row in sessions:
        assert {name: row[name] for name in names} == {name: compared[row["cell_id"]][name] for name in names}
    alone = [row for row in measured.farm.history().to_dicts() if row["baseline_series_id"] is None]
    assert {row[f"baseline_{name}"] for row in alone for name in (*setup, "settings")} <= {None}


def test_a_regression_has_what_its_series_run_as_fields(measured: MeasuredFarm) -> None:
    (row,) = measured.farm.regressions(every=True).to_dicts()
    names = ("harness", "model", "precision", "format", "memory_format", "target", "backend", "settings")
    (session,) = [
        session
        for session in measured.farm.history(device="virtual-2").to_dicts()
        if session["baseline_series_id"] is not None
        and session["matrix_id"] == measured.finished
        and session["precision"] == row["precision"]
    ]
    for name in (*names, *(f"baseline_{name}" for name in names)):
        assert row[name] == session[name]
    assert (row["precision"], row["baseline_precision"]) == ("int8-core", "float32")
    assert (row["old_variant_digest"], row["variant_digest"]) == ("a" * 64, "b" * 64)
    assert (row["old_program_digest"], row["program_digest"]) == (None, None)


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
    for frame in [*every_frame(measured), measured.farm.devices()]:
        expected = frame.to_dicts()
        assert frame.to_arrow().to_pylist() == expected
        assert frame.to_polars().to_dicts() == expected
        pandas = frame.to_pandas()
        assert list(pandas.columns) == list(frame.columns)
        for name in {"as_of", "n"} & {*frame.columns}:
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
    assert "No comparison to show." in empty._repr_html_()


def test_a_history_is_drawn_and_regressions_are_a_table_as_on_their_pages(measured: MeasuredFarm) -> None:
    history = measured.farm.history(variant="int8")
    page = measured.farm.client._get_text(f"{measured.farm.url}/history?variant=int8")
    assert trends(history._repr_html_()) == trends(page)
    assert len(trends(page)) == 2 * len(history.histories)
    (change,) = measured.farm.regressions(every=True)
    table = measured.farm.regressions(every=True)._repr_html_()
    assert f"<td>{change.change_id}</td><td>mobilenet_v2 int8-core on phone-1" in table
    none = measured.farm.regressions(state="invalid")
    assert "No change to show." in none._repr_html_()


def trends(html: str) -> list[str]:
    return re.findall(r"<polyline.*?</svg>", html, re.DOTALL)


def plots(html: str) -> list[str]:
    return re.findall(r'<svg [^>]*aria-label="Forest plot.*?</svg>', html, re.DOTALL)
