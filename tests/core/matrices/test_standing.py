"""Why a cell of a standing matrix is missing."""

import pytest

from farm.core.base.ids import digest_of
from farm.core.matrices.standing import CellVersions, missing_reason

OLD, NEW = digest_of(b"old"), digest_of(b"new")


@pytest.mark.parametrize(
    ("now", "before", "reason"),
    [
        (
            CellVersions(variant=NEW, program=NEW, build="2"),
            CellVersions(variant=OLD, program=OLD, build=None),
            f"new file {NEW[:8]}, was {OLD[:8]}; new program {NEW[:8]}, was {OLD[:8]}",
        ),
        (
            CellVersions(variant=None, program=OLD, build="2"),
            CellVersions(variant=None, program=OLD, build=None),
            "a new build, or new settings of the matrix",
        ),
    ],
)
def test_a_build_that_is_not_known_is_not_said_to_be_new(
    now: CellVersions, before: CellVersions, reason: str
) -> None:
    assert missing_reason(now, before) == reason
