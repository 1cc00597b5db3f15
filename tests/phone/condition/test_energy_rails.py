"""Meters of power rails as the power stats HAL prints them, in samples of our own: of no real phone."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.phone.condition.energy_rails import rail_reading

HAL_2 = """\
uptime 5211.37

============= PowerStats HAL 2.0 energy meter ==============
                           Channel   Cumulative Energy
            [VSYS_PWR_MODEM]:Modem       5108231.42 mWs
         [S2M_VDD_CPUCL2]:CPU(BIG)        912345.67 mWs
         [S3M_VDD_CPUCL1]:CPU(MID)        400123.05 mWs
                [S10M_VDD_TPU]:TPU             0.00 mWs
========== End of PowerStats HAL 2.0 energy meter ==========
"""
FIRST_HAL_2 = """\
============= PowerStats HAL 2.0 energy meter ==============
             Channel    Cumulative Energy
      S2M_VDD_CPUCL2        912345.67 mWs
========== End of PowerStats HAL 2.0 energy meter ==========
"""


def test_rails_are_read_with_their_energy_in_joules() -> None:
    reading = rail_reading(HAL_2)
    assert reading is not None
    assert reading.uptime_s == 5211.37
    assert reading.joules == {
        "[VSYS_PWR_MODEM]:Modem": pytest.approx(5108.23142),
        "[S2M_VDD_CPUCL2]:CPU(BIG)": pytest.approx(912.34567),
        "[S3M_VDD_CPUCL1]:CPU(MID)": pytest.approx(400.12305),
        "[S10M_VDD_TPU]:TPU": 0.0,
    }


def test_the_first_versions_name_the_rail_alone() -> None:
    reading = rail_reading(FIRST_HAL_2)
    assert reading is not None
    assert (list(reading.joules), reading.uptime_s) == (["S2M_VDD_CPUCL2"], None)


def test_carriage_returns_and_a_column_of_differences_change_nothing() -> None:
    with_delta = HAL_2.replace(" mWs", " mWs (          1.50)").replace("\n", "\r\n")
    assert rail_reading(with_delta) == rail_reading(HAL_2)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "uptime 12.5\n",
        "Can't find service: android.hardware.power.stats.IPowerStats/default\n",
        # Cut: which rails are missing is not known.
        HAL_2.partition("[S3M")[0],
        HAL_2.replace("energy meter", "energy consumers"),
        HAL_2.replace(" mWs", " mAh"),
    ],
)
def test_what_is_no_whole_table_of_meters_gives_nothing(text: str) -> None:
    assert rail_reading(text) is None


def test_a_rail_that_is_there_twice_is_left_out() -> None:
    row = "         [S2M_VDD_CPUCL2]:CPU(BIG)        912345.67 mWs\n"
    reading = rail_reading(HAL_2.replace(row, row + row.replace("912", "913")))
    assert reading is not None
    assert "[S2M_VDD_CPUCL2]:CPU(BIG)" not in reading.joules
    assert len(reading.joules) == 3


@given(st.text(max_size=400), st.text(max_size=200))
def test_hostile_text_gives_finite_energies_or_none(before: str, inside: str) -> None:
    for text in (before, before + HAL_2, HAL_2.replace("[S3M", f"{inside}\n[S3M")):
        reading = rail_reading(text)
        if reading is not None:
            assert all(0 <= value < 1e11 for value in reading.joules.values())
