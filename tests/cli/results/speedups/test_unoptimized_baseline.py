"""A float32 file that phones could run faster is named wherever something is compared with it."""

import io

from rich.console import Console

from farm.cli.results.speedups.groups import group_tables
from farm.cli.results.speedups.pivot import pivot_tables
from farm.cli.results.speedups.table import speedup_table
from farm.services.results.history.group_speedups import group_speedups
from farm.services.results.speedups.listing import list_speedups
from farm.wire.documents.results.history import GroupBy
from tests.services.results.history.test_latest_speedups import measured
from tests.support.farm.service_fixture import FarmRig, HostRig

MARK = "baseline float32 (unoptimized)"


def tables(farm: FarmRig, host: HostRig, code: str) -> list[str]:
    """Return the tables that compare int8-core with a float32 file of this code."""
    farm.variant("float32", edition=code)
    views = farm.read(list_speedups, measured(farm, host, rounds=5))
    groups = Console(file=io.StringIO(), width=100)
    groups.print(group_tables(farm.read(group_speedups, GroupBy.ALL)))
    assert isinstance(groups.file, io.StringIO)
    return [
        speedup_table(views, width=100).plain,
        pivot_tables(views, width=100).plain,
        groups.file.getvalue(),
    ]


def test_it_is_marked_in_every_table(farm: FarmRig, host: HostRig) -> None:
    table, *others = tables(farm, host, " torch.conv2d(")
    assert all(MARK in text for text in (table, *others))
    assert "caution: int8-core: the baseline is not optimized for mobile" in table


def test_a_file_with_packed_weights_is_a_baseline_like_others(farm: FarmRig, host: HostRig) -> None:
    for text in tables(farm, host, " ops.prepacked.conv2d_clamp_run("):
        assert "baseline float32" in text
        assert "optimized" not in text
