"""The usage of devices at 80 columns: each row adds up, and says of how much time."""

from datetime import timedelta

from farm.cli.devices.usage import usage_of_weeks, usage_report
from farm.core.operations.usage import UsageState, week_named
from farm.presentation.text import local_time_text
from farm.wire.documents.devices import DeviceUsage, ModelUsage, UsageView
from tests.cli.devices.test_table import shown
from tests.support.sample_views import NOON

SHARES = dict(zip(UsageState, (41.5, 3.2, 20.1, 1.0, 30.2, 4.0), strict=True))
KIND = {"device_model": "Pixel 7a", "soc": "Tensor G2", "virtual": False}


def view(week: str = "2026-W47", *, known: bool = True) -> UsageView:
    begin = week_named(week).begin
    spent = {"seconds": {state: share * 6048 for state, share in SHARES.items()}, "shares_pct": SHARES}
    device = DeviceUsage(device_id="phone-1", label="shelf-1", known_s=604_800, **KIND, **spent)
    new = DeviceUsage(device_id="phone-2", label=None, known_s=2700, **KIND, **spent)
    model = ModelUsage(devices=2, known_s=607_500, **KIND, **spent)
    return UsageView(
        week=week,
        begin=begin,
        end=begin + timedelta(days=7),
        known_since=NOON if known else None,
        devices=(device, new) if known else (),
        models=(model,) if known else (),
    )


def test_devices_and_their_models_have_a_row_each_within_80_columns() -> None:
    assert shown(usage_report([view()])) == [
        "week 2026-W47, from 2026-11-16 UTC, in per cent of the known time",
        "device    known  measuring  preparing  cooling  checking  waiting  away",
        "shelf-1   7.0 d       41.5        3.2     20.1       1.0     30.2   4.0",
        "phone-2  45 min       41.5        3.2     20.1       1.0     30.2   4.0",
        "",
        "device model       known  measuring  preparing  cooling  checking  waiting  away",
        "Pixel 7a, Tensor   7.0 d       41.5        3.2     20.1       1.0     30.2   4.0",
        "G2: 2 devices",
        "",
        f"Known since {local_time_text(NOON)}.",
    ]


def test_a_short_time_is_told_in_seconds() -> None:
    short = view().devices[1].model_copy(update={"known_s": 42.4})
    (row,) = (
        line
        for line in shown(usage_report([view().model_copy(update={"devices": (short,)})]))
        if line.startswith("phone-2")
    )
    assert row.split()[1:3] == ["42", "s"]


def test_a_week_of_which_nothing_is_known_says_so() -> None:
    assert shown(usage_report([view(known=False)])) == [
        "week 2026-W47, from 2026-11-16 UTC: nothing is known.",
        "",
        "The farm has seen no device yet.",
    ]


def test_the_weeks_before_follow_the_one_that_is_named() -> None:
    asked: list[str | None] = []

    def fetch(week: str | None) -> UsageView:
        asked.append(week)
        return view(week or "2027-W01")

    weeks = usage_of_weeks(fetch, None)
    assert [next(weeks).week for _ in range(3)] == ["2027-W01", "2026-W53", "2026-W52"]
    assert asked == [None, "2026-W53", "2026-W52"]
