"""The order of rows that a person asks for."""

from rich.console import Console

from farm.cli.results.speedups.command import Order, in_order
from farm.cli.results.speedups.pivot import pivot_tables
from farm.cli.results.speedups.table import speedup_table
from tests.support.sample_views import speedup_view


def test_rows_are_ranked_by_time_or_speedup_and_those_without_come_last() -> None:
    slow = speedup_view(cell_id=1, candidate="slow", candidate_ns=9e6, speedup=3.0)
    quick = speedup_view(cell_id=2, candidate="quick", candidate_ns=2e6, speedup=2.0)
    nothing = speedup_view(cell_id=3, candidate="nothing", candidate_ns=None, speedup=None)
    views = [nothing, slow, quick]
    assert in_order(views, None) == views
    assert in_order(views, Order.TIME) == [quick, slow, nothing]
    assert in_order(views, Order.SPEEDUP) == [slow, quick, nothing]
    for draw in (speedup_table, pivot_tables):
        console = Console(width=100, color_system=None)
        with console.capture() as captured:
            console.print(draw(in_order(views, Order.TIME), width=100, as_given=True))
        places = [captured.get().index(f"\n{name} ") for name in ("quick", "slow", "nothing")]
        assert places == sorted(places)
