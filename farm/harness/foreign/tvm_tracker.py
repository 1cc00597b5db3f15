"""What TVM's `query_rpc_tracker` prints: how many devices of each key there are, and who waits."""

import re
from dataclasses import dataclass

_ROW = re.compile(r"(\S{1,200})\s+([0-9]{1,9})\s+([0-9]{1,9})\s+([0-9]{1,9})\s*$")


@dataclass(frozen=True, slots=True, kw_only=True)
class TrackerQueue:
    """The devices of one key."""

    key: str
    total: int
    free: int
    pending: int


def tracker_queues(text: str) -> list[TrackerQueue]:
    """The rows of its table `Queue Status`; what stands above, servers and their keys, is left out."""
    _, mark, rows = text.partition("Queue Status")
    found = (_ROW.match(line.strip()) for line in rows.splitlines()) if mark else ()
    return [
        TrackerQueue(key=row[1], total=int(row[2]), free=int(row[3]), pending=int(row[4]))
        for row in found
        if row is not None
    ]
