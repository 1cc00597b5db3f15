"""A history that is copied in steps is whole, whatever the steps."""

from pathlib import Path

import pytest

from benchmarks.copied_history import History
from tests.support.farm.service_fixture import FarmRig

pytestmark = pytest.mark.long


@pytest.mark.parametrize("steps", [(1, 2), (1, 3), (2, 4), (3,)])
def test_each_device_has_one_copy_of_each_cell_in_each_matrix(tmp_path: Path, steps: tuple[int, ...]) -> None:
    rig = FarmRig(tmp_path)
    history = History(rig, devices=3, cells=2)
    for matrices in steps:
        history.grow(matrices)
        (counts,) = rig.rows(
            "SELECT (SELECT COUNT(*) FROM matrices) AS matrices, (SELECT COUNT(*) FROM measurements) AS size,"
            " (SELECT COUNT(DISTINCT cell_id) FROM measurements) AS measured"
        )
        assert counts == {
            "matrices": matrices,
            "size": matrices * 3 * history.size,
            "measured": matrices * 3 * 2,
        }
        points = rig.rows("SELECT matrix_id, COUNT(*) AS count FROM points WHERE newest GROUP BY matrix_id")
        assert points == [{"matrix_id": matrices, "count": 3 * 2}]
    rig.close()
