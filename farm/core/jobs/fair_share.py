"""Fair share of a device's queue: users take turns by virtual times, which order the jobs of a priority."""


def first_virtual_time(head: int | None, own_tail: int | None) -> int:
    """Return the virtual time of the first round of a new submission in a device's queue.

    It joins the round that is served next, behind its jobs, and never before waiting jobs of the same user:
    it follows one unit after the user's last round, whatever the size of that round. Within a submission
    each round advances virtual time by its number of jobs (`round_virtual_time`).

    Args:
        head: the virtual time that the device serves next; None when nothing waits.
        own_tail: the last virtual time of the same user's waiting jobs; None when there are none.
    """
    behind_own = 0 if own_tail is None else own_tail + 1
    return max(head or 0, behind_own)


def round_virtual_time(first: int, *, round_number: int, jobs_per_round: int) -> int:
    """Return the virtual time shared by all jobs of a round, so that rounds are not interleaved.

    Args:
        first: that of the submission's first round.
        round_number: counted within the submission, from 1.
        jobs_per_round: of the submission, on the device.
    """
    return first + (round_number - 1) * jobs_per_round
