"""A placement as its column keeps it."""

import json

from pydantic import TypeAdapter

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.store.results.placements import stored_placement

SHARE = Share(accelerator=Accelerator.NPU, by="acme-npu", nodes=20, line="20 nodes")
LISTED = Placement(
    shares=(SHARE,), total_nodes=22, warnings=("2 are left",), offered=("acme-npu", "acme-gpu")
)


def test_what_is_kept_comes_back_as_it_was() -> None:
    kept = json.loads(json.dumps(stored_placement(LISTED)))
    found = TypeAdapter(Placement).validate_python(kept)
    assert (found.shares, found.total_nodes) == (LISTED.shares, LISTED.total_nodes)
    assert (tuple(found.offered), tuple(found.warnings)) == (LISTED.offered, LISTED.warnings)


def test_one_without_a_list_of_accelerators_is_kept_as_before_there_were_such_lists() -> None:
    assert set(stored_placement(Placement(shares=(SHARE,))) or ()) == {"shares", "total_nodes", "warnings"}
