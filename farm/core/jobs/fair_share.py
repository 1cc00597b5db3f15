"""Fair share of a device's queue: users take turns by virtual times, which order the jobs of a priority."""


def first_virtual_time(head: int | None, own_tail: int | None) -> int:
    """Return the virtual time at which a new submission joins a device's queue.

    It joins at the head of the queue, but behind the user's own jobs: those of one user run in their order,
    those of several users by rounds in turn. Virtual time counts jobs: a round of many cells is due as much
    less often as it takes longer.

    Args:
        head: the virtual time that the device serves next; None when nothing waits.
        own_tail: the last virtual time of the same user's waiting jobs; None when there are none.
    """
    behind_own = 0 if own_tail is None else own_tail + 1
    return max(head or 0, behind_own)


def round_virtual_time(first: int, *, round: int, starts: int) -> int:
    """Return the virtual time shared by all jobs of a round, so that rounds are not interleaved."""
    return first + (round - 1) * starts
