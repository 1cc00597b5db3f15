"""The points of comparisons over devices as they were known at a moment."""

from datetime import datetime

from sqlalchemy.engine import Connection

from farm.core.errors import InvalidInput
from farm.database.known_at import as_known_at
from farm.services.results.history.session_points import COMPUTED_AT_ONCE, session_points
from farm.store.results.history.newest_points import DevicePoint, SlotPair, compared_by_slots
from farm.store.results.history.past_points import points_ended_by, sessions_superseded_since
from farm.store.results.history.stale_points import pending_sessions

#: Sessions that changed since, and are computed again for an answer, at most.
MOST_CHANGED = 200


def newest_points_at(connection: Connection, at: datetime) -> dict[SlotPair, list[DevicePoint]]:
    """Return the newest points of sessions that had ended by a time by slots, as known then.

    Points hold what is known now, so sessions of which something was retracted or parsed again since are
    computed again, and those whose points are not computed yet.

    Raises:
        InvalidInput: there are more than `MOST_CHANGED` of them.
    """
    changed = sessions_superseded_since(connection, at, limit=MOST_CHANGED + 1)
    if len(changed) > MOST_CHANGED:
        raise InvalidInput(
            f"more than {MOST_CHANGED} sessions were retracted or parsed again since {at.isoformat()}",
            hint="without --by, `farm speedups --at` has no such limit",
        )
    again = {*changed, *pending_sessions(connection)[:COMPUTED_AT_ONCE]}
    found = points_ended_by(connection, at, without=again)
    then = as_known_at(connection, at)
    for session in sorted(again):
        ended = [point for point in session_points(then, session) if point.ended_at <= at]
        for slots, points in compared_by_slots(ended).items():
            found.setdefault(slots, []).extend(points)
    return found
