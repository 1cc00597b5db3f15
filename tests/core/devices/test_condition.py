from datetime import UTC, datetime

from farm.core.devices.condition import Condition, ThermalStatus, condition_ranges

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def skin(celsius: float | None, status: ThermalStatus | None = None) -> Condition:
    return Condition(taken_at=NOON, skin_c=celsius, thermal_status=status)


def test_ranges_span_the_runs_before_and_after_apart() -> None:
    (found,) = condition_ranges([(skin(30.0), skin(33.0)), (skin(31.0), skin(32.0))])
    assert (found.name, found.before, found.after, found.known) == ("skin_c", (30.0, 31.0), (32.0, 33.0), 2)


def test_what_a_phone_does_not_say_is_no_zero() -> None:
    runs = [(skin(30.0), None), (None, None), (skin(None), skin(None))]
    (found,) = condition_ranges(runs)
    assert (found.before, found.after, found.known) == ((30.0, 30.0), None, 1)
    assert condition_ranges([]) == ()


def test_a_zero_is_a_value() -> None:
    (found,) = condition_ranges([(skin(None, ThermalStatus.NONE), skin(None, ThermalStatus.LIGHT))])
    assert (found.name, found.before, found.after) == ("thermal_status", (0.0, 0.0), (1.0, 1.0))
