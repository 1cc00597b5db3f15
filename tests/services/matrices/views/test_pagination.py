"""Long listings are told page by page, and the pages join though work goes on between them."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from farm.core.base.ids import CellId, MatrixId
from farm.core.errors import NotFound
from farm.database.transaction import bind_tx
from farm.services.matrices.lazy_expansion import expand_small, open_row_builder, put_row_batch
from farm.services.matrices.views import list_matrix_summaries, list_rejected_views, matrix_view
from farm.services.results.cells import list_results
from farm.services.results.explanations.cells import explain_cell
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.speedups.listing import list_speedups
from farm.store.matrices.lazy_expansion import next_batches
from farm.store.matrices.matrices import PAGE, add_rejections, page_of_rejections
from farm.wire.documents.matrices.matrix import matrix_spec
from farm.wire.documents.results.results import MAX_RESULTS_PAGE
from farm.wire.documents.results.speedups import SpeedupView
from tests.support.farm.direct_calls import submit_unexpanded
from tests.support.farm.service_fixture import FarmRig, HostRig, good_evidence

MANY = 6000
Pair = tuple[str, str | None, str, str, str]


def submit(
    farm: FarmRig, *, warmups: Sequence[int], inline_jobs: int, iters: Sequence[int] = (5,), **changed: Any
) -> MatrixId:
    spec = {
        "name": "wide",
        "harness": "speed_benchmark_torch",
        "axes": {
            "model": "mobilenet_v2",
            "precision": ["float32", "int8-core"],
            "format": "torchscript",
            "backend": "cpu",
            "warmup": list(warmups),
            "iter": list(iters),
        },
        "devices": {"device": "phone-1"},
        "rounds": 1,
        "baseline": {"precision": "float32"},
        "seed": 7,
        **changed,
    }
    matrix_id = farm.write(bind_tx(submit_unexpanded, now=farm.clock.now(), actor="user"), matrix_spec(spec))
    farm.write(bind_tx(expand_small, now=farm.clock.now()), matrix_id, jobs=inline_jobs)
    return matrix_id


def unfold(farm: FarmRig, matrix_id: MatrixId, *, jobs: int) -> None:
    if (builder := farm.read(open_row_builder, matrix_id)) is not None:
        chunk = builder.build(farm.read(next_batches, matrix_id, jobs=jobs))
        assert farm.write(bind_tx(put_row_batch, now=farm.clock.now()), builder, chunk)


def stored(farm: FarmRig, matrix_id: MatrixId) -> set[int]:
    rows = farm.rows("SELECT cell_index FROM cells WHERE matrix_id = :matrix", matrix=matrix_id)
    return {row["cell_index"] for row in rows}


@pytest.mark.long
def test_results_of_ten_thousand_cells_come_in_pages_that_join_while_more_are_queued(
    farm: FarmRig, host: HostRig
) -> None:
    matrix_id = submit(farm, warmups=range(1, 1001), iters=range(1, MANY // 1000 + 1), inline_jobs=0)
    unfold(farm, matrix_id, jobs=MANY)
    there, seen, after = stored(farm, matrix_id), list[int](), -1
    while page := farm.read(list_results, matrix_id, after=after):
        assert len(page) <= MAX_RESULTS_PAGE
        seen += [result.index for result in page]
        after = seen[-1]
        unfold(farm, matrix_id, jobs=1000)
    assert seen == sorted(set(seen))
    assert there <= set(seen) <= stored(farm, matrix_id)
    assert len(there) >= MANY


@pytest.mark.long
def test_comparisons_of_ten_thousand_cells_come_in_pages_that_join(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=range(1, 1001), iters=range(1, MANY // 1000 + 1), inline_jobs=10**6)
    seen: list[CellId] = []
    while page := farm.read(list_speedups, matrix_id, after=seen[-1] if seen else None):
        assert len(page) <= 2000
        seen += [view.cell_id for view in page]
    assert len(seen) == len(set(seen)) == MANY


@pytest.mark.parametrize("limit", [1, 3, 7])
def test_pages_of_comparisons_are_what_one_page_says(farm: FarmRig, host: HostRig, limit: int) -> None:
    matrix_id = submit(farm, warmups=[1, 2], inline_jobs=100, devices={"virtual": True})
    submit(farm, warmups=[2, 3], inline_jobs=100, devices={"virtual": True})
    host.run(good_evidence)
    for ask in (of_matrix(farm, matrix_id), newest(farm)):
        whole = ask()
        assert len(whole) > 3
        assert joined(ask, limit) == whole
        assert joined(ask, limit, device="phone-1") == [view for view in whole if view.device_id == "phone-1"]
        assert joined(ask, limit, model="mobilenet_v2") == whole


def test_no_pair_is_missed_or_told_twice_though_newer_matrices_are_measured_between_pages(
    farm: FarmRig, host: HostRig
) -> None:
    def measure() -> None:
        submit(farm, warmups=[1, 2, 3], inline_jobs=100, devices={"virtual": True})
        host.run(good_evidence)

    measure()
    ask = newest(farm)
    before = [pair(view) for view in ask()]
    assert [pair(view) for view in joined(ask, 1, between=measure)] == before


def of_matrix(farm: FarmRig, matrix_id: MatrixId) -> Callable[..., list[SpeedupView]]:
    return lambda **how: farm.read(list_speedups, matrix_id, **how)


def newest(farm: FarmRig) -> Callable[..., list[SpeedupView]]:
    return lambda **how: farm.read(list_latest_speedups, **how)


def joined(
    ask: Callable[..., list[SpeedupView]],
    limit: int,
    between: Callable[[], None] = lambda: None,
    **narrow: str,
) -> list[SpeedupView]:
    """All pages of so many at most."""
    views: list[SpeedupView] = []
    while page := ask(after=views[-1].cell_id if views else None, limit=limit, **narrow):
        assert len(page) <= limit
        views += page
        between()
    return views


def pair(view: SpeedupView) -> Pair:
    return view.device_id, view.model, view.baseline, view.candidate, str(view.changed_settings)


def test_the_newest_comparison_of_a_pair_is_told(farm: FarmRig, host: HostRig) -> None:
    submit(farm, warmups=[1, 2], inline_jobs=100)
    host.run(good_evidence)
    later = submit(farm, warmups=[2], inline_jobs=100)
    host.run(good_evidence)
    never = submit(farm, warmups=[2], inline_jobs=100)
    of_two = {view.matrix_id for view in newest(farm)() if view.settings.get("warmup") == 2}
    assert of_two == {later} != {never}


@pytest.mark.parametrize("after", [0, 10**6])
def test_a_place_that_there_is_not_is_refused(farm: FarmRig, host: HostRig, after: int) -> None:
    matrix_id = submit(farm, warmups=[1], inline_jobs=100)
    for ask in (of_matrix(farm, matrix_id), newest(farm)):
        with pytest.raises(NotFound):
            ask(after=after)


def test_a_cells_own_comparison_is_the_one_in_the_listing(farm: FarmRig, host: HostRig) -> None:
    matrix_id = submit(farm, warmups=[1, 2], inline_jobs=100, aa=True)
    host.run(good_evidence)
    views = {view.cell_id: view for view in farm.read(list_speedups, matrix_id)}
    for cell_id, view in views.items():
        explained = farm.read(explain_cell, cell_id)
        assert explained.speedup == view
        anchor = view.baseline_cell_id
        assert explained.aa == next(
            each for each in views.values() if each.aa and each.baseline_cell_id == anchor
        )


@pytest.mark.parametrize("count", [0, 1, PAGE, 2 * PAGE + 1])
def test_rejected_cells_come_in_pages_each_once(farm: FarmRig, host: HostRig, count: int) -> None:
    matrix_id = submit(farm, warmups=[1], inline_jobs=100)
    farm.write(
        add_rejections, matrix_id, [("phone-1", f"cell {index}", "excluded", "no") for index in range(count)]
    )
    for step in (PAGE, 700):
        seen: list[int] = []
        while page := farm.read(page_of_rejections, matrix_id, after=seen[-1] if seen else -1):
            assert len(page) <= PAGE
            assert [each.label for each in page] == [f"cell {each.index}" for each in page]
            seen += [each.index for each in page][:step]
        assert seen == list(range(count))


def test_a_matrix_says_how_many_of_its_cells_are_rejected_and_shows_the_first(
    farm: FarmRig, host: HostRig
) -> None:
    excluded = [{"precision": "int8-core", "warmup": warmup} for warmup in (1, 2)]
    matrix_id = submit(farm, warmups=[1, 2, 3], inline_jobs=100, exclude=excluded)
    view = farm.read(bind_tx(matrix_view, now=farm.clock.now()), matrix_id)
    assert view.rejected == len(view.rejected_list) == 2
    assert view.rejected_list == farm.read(list_rejected_views, matrix_id, after=-1)
    assert farm.read(list_rejected_views, matrix_id, after=0) == view.rejected_list[1:]
    assert farm.read(list_rejected_views, matrix_id, after=1) == ()


def test_matrices_are_listed_newest_first_and_page_by_page(sqlite_farm: FarmRig) -> None:
    farm = sqlite_farm
    for precision in ("float32", "int8-core"):
        farm.variant(precision)
    host = farm.host()
    host.plug_in("phone-1")
    host.exchange()
    ids = [submit(farm, warmups=[5], inline_jobs=MANY) for _ in range(3)]

    def page(before: MatrixId | None) -> list[MatrixId]:
        listing = bind_tx(list_matrix_summaries, now=farm.clock.now())
        return [summary.matrix_id for summary in farm.read(listing, before=before, limit=2)]

    assert (page(None), page(ids[1]), page(ids[0])) == ([ids[2], ids[1]], [ids[0]], [])
