"""How many examples a property test tries where it says so itself: few when quick, many when long."""

from hypothesis import settings


def examples(quick: int, long: int) -> int:
    """Return one of two counts, by the profile of this run: `make test-long` runs with the long one."""
    return long if settings.get_current_profile_name() == "long" else quick
