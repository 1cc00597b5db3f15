"""Questions over the history read index ranges, by the statements that lists of commands really send."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, MatrixId, SeriesId
from farm.database.engine import Database
from farm.database.transaction import Tx
from farm.services.matrices.views import list_matrix_summaries
from farm.store.files import variants
from farm.store.jobs.counts import incomplete_cells
from farm.store.matrices import coverage, matrices
from farm.store.matrices.candidates import CandidateFilter, labels_of_matrix, page_of_labelled
from farm.store.matrices.matrices import planned_baselines
from farm.store.matrices.search import MatrixFilter, index_names, list_matrices
from farm.store.newest_first import ListFilter
from farm.store.results import past_pairs
from farm.store.results.history import (
    changes,
    chosen_sides,
    newest_points,
    past_points,
    points,
    session_starts,
    trends,
)
from farm.store.results.history.newest_points import DeviceTrait, SlotPair
from farm.store.results.history.points import PairKey
from farm.store.results.history.stale_points import MeasuredSession, pending_sessions, sessions_behind
from farm.store.results.interchange import external_results
from farm.store.results.past_pairs import SeriesPast, past_measurements
from tests.store.query_plans.test_sqlite_query_plans import PHONE, is_table_scan, plans
from tests.support.database.sample_rows import NOW

KEY = PairKey(device_id=PHONE, baseline_series_id=1, series_id=SeriesId(2), is_duplicate=False)
PAIR = SlotPair(1, 2)
SESSION = MeasuredSession(MatrixId(1), PHONE)
NIGHTLY = MatrixFilter(name="nightly")
ANN = MatrixFilter(submitted_by="user:ann")
#: The variants of the sample have no manifests that could be read.
LATER = NOW + timedelta(days=1)
FEW_MATRICES = MatrixFilter(name="nightly", matrix_ids=(MatrixId(1), MatrixId(2)))

ASKED: dict[str, tuple[Callable[[Connection], object], str]] = {
    "speedups --by: one comparison over all devices": (
        lambda c: newest_points.newest_sums(c, PAIR, None),
        "USING COVERING INDEX ix_points_newest_of_slot (slot=? AND baseline_slot=? AND device_id=?)",
    ),
    "speedups --by: the baselines of its cells": (
        lambda c: matrices.planned_baselines(c, [CellId(1)]),
        "cells USING INTEGER PRIMARY KEY (rowid=?)",
    ),
    "speedups --by device: how well the rounds agree": (
        lambda c: newest_points.precisions_of_points(c, [CellId(1)]),
        "points USING INTEGER PRIMARY KEY (rowid=?)",
    ),
    "speedups --by: since a time": (
        lambda c: newest_points.newest_sums(c, PAIR, DeviceTrait.SOC, since=NOW, without=[PHONE]),
        "USING COVERING INDEX ix_points_newest_of_slot (slot=? AND baseline_slot=? AND device_id=?)",
    ),
    "speedups --by: devices of a model": (
        lambda c: newest_points.count_devices_with_model(c, "m", None, besides=PAIR, since=NOW),
        "_newest",
    ),
    "speedups --by --at": (
        lambda c: past_points.points_ended_by(c, NOW, without=[SESSION], device_ids=[PHONE]),
        "own USING INDEX ix_points_series (series_id=?)",
    ),
    "what was retracted or parsed again since": (
        lambda c: past_points.sessions_superseded_since(c, NOW, limit=10),
        "ix_measurements_superseded_at (superseded_at>?)",
    ),
    "speedups: the pairs of devices": (
        lambda c: points.newest_cells(c, [PHONE], model="m", since=NOW),
        "_points_newest",
    ),
    "speedups: what earlier matrices measured of series": (
        lambda c: past_measurements(c, [SeriesPast(SeriesId(1), SeriesId(2), MatrixId(9))], matrices=6),
        "ix_points_series (series_id=? AND matrix_id<?)",
    ),
    "speedups: the planned baselines of candidates": (
        lambda c: planned_baselines(c, [CellId(1)]),
        "sqlite_autoindex_cells_1 (matrix_id=? AND cell_index=?)",
    ),
    "speedups: the duplicates of baselines of several matrices": (
        lambda c: past_pairs.duplicates_of(c, {(MatrixId(1), 0), (MatrixId(2), 0)}),
        "cells USING INDEX",
    ),
    "speedups: the A/A pairs of devices": (
        lambda c: past_pairs.aa_pairs(c, [PHONE], matrices=50),
        "ix_cells_duplicates",
    ),
    "speedups: cells whose rounds are not all run": (
        lambda c: incomplete_cells(c, [CellId(1)]),
        "lazy_expansions",
    ),
    "speedups --name: the pairs of devices": (
        lambda c: points.newest_cells(c, [PHONE], which=NIGHTLY),
        "matrices USING INTEGER PRIMARY KEY (rowid=?)",
    ),
    "speedups --mine: the cells of pairs": (
        lambda c: points.cells_of_pairs(c, [KEY], until=MatrixId(9), since=NOW, which=ANN, limit=20),
        "ix_points_series (series_id=?",
    ),
    "speedups --baseline: the series of devices": (
        lambda c: chosen_sides.newest_sides(c, [PHONE], labels=["a", "b"]),
        "_points_newest",
    ),
    "speedups --baseline --name: the cells of pairs": (
        lambda c: chosen_sides.cells_of_sides(c, [KEY], until=None, since=None, which=NIGHTLY, limit=20),
        "other USING INDEX ix_points_series (series_id=? AND matrix_id=?)",
    ),
    "speedups MATRIX --baseline: the labels": (
        lambda c: labels_of_matrix(c, [MatrixId(1)]),
        "(matrix_id=?)",
    ),
    "speedups MATRIX --baseline: a page": (
        lambda c: page_of_labelled(c, MatrixId(1), CandidateFilter(), ["a"], after=7, limit=9),
        "(matrix_id=? AND cell_index>?)",
    ),
    "history: the series of a device": (
        lambda c: trends.series_page(c, device_id=PHONE, model=None, after=SeriesId(5), limit=9),
        "ix_series_device_id (device_id=? AND series_id>?)",
    ),
    "history --variant": (
        lambda c: trends.series_page(
            c, device_id=PHONE, model="m", name_part="int8", after=SeriesId(0), limit=9
        ),
        "_newest",
    ),
    "history: the points of a series": (
        lambda c: trends.points_of_series(c, [SeriesId(1)], since=NOW),
        "ix_points_series (series_id=?)",
    ),
    "history: whether series have points": (
        lambda c: trends.has_points(c, [SeriesId(1)], since=NOW),
        "ix_points_series (series_id=?)",
    ),
    "history: what ran in cells": (lambda c: trends.cells_of_points(c, [CellId(1)]), "cells"),
    "whether points are to be computed": (pending_sessions, "SEARCH measurements"),
    "points to be computed": (lambda c: sessions_behind(c, 5), "rowid>?"),
    "history: the points of devices to be computed": (
        lambda c: sessions_behind(c, 5, [PHONE], which=NIGHTLY, newest=20),
        "rowid>?",
    ),
    "the cells of sessions": (
        lambda c: session_starts.cells_of_sessions(c, [SESSION]),
        "ix_cells_of_device (matrix_id=? AND device_id=?)",
    ),
    "the measurements of cells": (
        lambda c: session_starts.starts_of_cells(c, [CellId(1)]),
        "ix_measurements_cell_id (cell_id=?)",
    ),
    "matrix list --since": (
        lambda c: list_matrix_summaries(Tx(c, NOW), limit=9, which=MatrixFilter(since=NOW)),
        "ix_matrices_created_at (created_at>?)",
    ),
    "regressions --since; on the overview, what changed since yesterday": (
        lambda c: changes.list_changes(c, changes.ChangeFilter(since=NOW, model="m"), before=None, limit=9),
        "ix_changes_told_at (told_at>?)",
    ),
    "history: the changes of a series": (
        lambda c: changes.marks_of_series(c, [SeriesId(1)]),
        "changed_series USING INDEX",
    ),
    "coverage: how far the cells of a standing matrix are": (
        lambda c: coverage.progress_by_version(c, 1),
        "standing_cells",
    ),
    "variant list --since": (
        lambda c: variants.newest_variants(c, ListFilter(since=LATER), limit=9),
        "ix_variants_created_at (created_at>?)",
    ),
    "variant list --mine": (
        lambda c: variants.newest_variants(c, ListFilter(person="ann"), limit=9),
        "ix_variants_registered_by (registered_by=?)",
    ),
    "import list --since": (
        lambda c: external_results.newest_imports(c, ListFilter(since=NOW), limit=9),
        "ix_imports_imported_at (imported_at>?)",
    ),
    "import list --mine": (
        lambda c: external_results.newest_imports(c, ListFilter(person="ann"), limit=9),
        "ix_imports_imported_by (imported_by=?)",
    ),
    "history --name: the series of few matrices": (
        lambda c: trends.series_page(
            c, device_id=None, model=None, which=FEW_MATRICES, after=SeriesId(0), limit=9
        ),
        "ix_points_session (matrix_id=?)",
    ),
    "history --mine: the series of many matrices": (
        lambda c: trends.series_page(c, device_id=PHONE, model=None, which=ANN, after=SeriesId(0), limit=9),
        "ix_points_series (series_id=?",
    ),
    "history --mine: the points of a series": (
        lambda c: trends.points_of_series(c, [SeriesId(1)], which=ANN),
        "ix_points_series (series_id=?)",
    ),
    "regressions --name: the series of few matrices": (
        lambda c: changes.list_changes(
            c, changes.ChangeFilter(since=NOW, matrices=FEW_MATRICES), before=None, limit=9
        ),
        "ix_points_session (matrix_id=?)",
    ),
    "regressions --mine: the series of many matrices": (
        lambda c: changes.list_changes(
            c, changes.ChangeFilter(since=NOW, matrices=ANN), before=None, limit=9
        ),
        "ix_points_series (series_id=?",
    ),
    "matrix list --mine": (
        lambda c: list_matrix_summaries(Tx(c, NOW), limit=9, which=ANN),
        "ix_matrices_submitted_by (submitted_by=?)",
    ),
}
#: They are small: a row for each session that is not computed yet, a device, a model file, a step.
SMALL = (
    "SCAN walk",
    "SCAN stale_points",
    "SCAN devices",
    "SCAN variants",
    "SCAN point_progress",
    "SCAN json_each",
)


@pytest.mark.parametrize("name", ASKED)
def test_a_question_over_the_history_scans_no_table_that_grows(sqlite_filled: Database, name: str) -> None:
    query, index = ASKED[name]
    found = plans(sqlite_filled, query)
    assert any(index in step for plan in found for step in plan), found
    scans = [step for plan in found for step in plan if is_table_scan(step)]
    assert not [step for step in scans if not step.startswith(SMALL)], found


def test_comparisons_are_found_by_one_step_into_the_index_for_each(sqlite_filled: Database) -> None:
    plan, *_ = plans(sqlite_filled, newest_points.list_comparisons)
    steps = [step for step in plan if "points" in step]
    assert all("ix_points_newest_of_slot" in step or "PRIMARY KEY" in step for step in steps), plan
    # Both columns: by the first one alone, each step would read the points of all devices.
    assert any("(slot=? AND baseline_slot>?)" in step for step in steps), plan
    assert any("(slot>?)" in step for step in steps), plan


def test_matrices_of_a_short_text_are_read_newest_first_until_there_are_enough(
    sqlite_filled: Database,
) -> None:
    short = MatrixFilter(name="ni")
    plan, *_ = plans(sqlite_filled, lambda c: list_matrix_summaries(Tx(c, NOW), limit=9, which=short))
    assert not any("B-TREE" in step for step in plan), plan


@pytest.mark.parametrize(
    "query",
    [
        lambda c: variants.newest_variants(c, ListFilter(name="of no variant"), limit=9),
        lambda c: external_results.newest_imports(c, ListFilter(name="f"), limit=9),
    ],
    ids=["variants", "imports"],
)
def test_files_of_a_name_are_read_newest_first_until_there_are_enough(
    sqlite_filled: Database, query: Callable[[Connection], object]
) -> None:
    plan, *_ = plans(sqlite_filled, query)
    assert not any("B-TREE" in step for step in plan), plan


def test_matrices_of_a_name_are_found_by_the_rarest_part_of_it(sqlite_filled: Database) -> None:
    sqlite_filled.write(lambda c: index_names(Tx(c, NOW), limit=9))
    found = plans(sqlite_filled, lambda c: list_matrices(c, limit=9, which=MatrixFilter(name="nightly")))
    steps = [step for plan in found for step in plan]
    assert any(
        "name_trigrams USING PRIMARY KEY (trigram=? AND matrix_id>? AND matrix_id<?)" in s for s in steps
    )
    assert any("matrices USING INTEGER PRIMARY KEY (rowid>?" in step for step in steps), found
    assert not [step for step in steps if is_table_scan(step) and not step.startswith(SMALL)], found
    assert not any("B-TREE" in step for plan in found[:-1] for step in plan), found
