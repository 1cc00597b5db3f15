"""In which order those who wait for a device get it: in turns, so that nobody's flood holds up the others."""


def first_virtual_time(head: int | None, own_tail: int | None) -> int:
    """Return the virtual time at which a new submission joins a device's queue.

    Beside whatever is next there, and behind what is their own: one person's jobs run in the order they came,
    several persons' by rounds of each in turn. Turns count jobs: a round of many cells comes up as much more
    seldom as it takes longer.

    Args:
        head: the turn that the device serves next; None when nothing waits.
        own_tail: the last turn of what the same person has waiting there; None when that is nothing.
    """
    behind_own = 0 if own_tail is None else own_tail + 1
    return max(head or 0, behind_own)


def round_virtual_time(first: int, *, round: int, cells: int) -> int:
    """Return the virtual time shared by all jobs of a round, so that rounds are not interleaved."""
    return first + (round - 1) * cells
