import pytest

from farm.phone.condition.battery import BatteryStatus, battery_status

DUMP = """\
Current Battery Service state:
  AC powered: false
  USB powered: true
  Max charging current: 500000
 Time when the latest updated value of the voltage was sent via battery changed broadcast: +1h2m
  status: 2
  present: true
  level: 81
  scale: 100
  voltage: 4100
  temperature: 287
  Capacity level: 3
LLB MAN:
  temperature: 999
"""


@pytest.mark.parametrize("text", [DUMP, DUMP.replace("\n", "\r\n")])
def test_level_temperature_and_charging_are_read(text: str) -> None:
    assert battery_status(text) == BatteryStatus(
        level_pct=81, temperature_c=28.7, voltage_v=4.1, charging=True, plugged="usb"
    )


def test_values_that_were_set_by_hand_are_not_the_batterys() -> None:
    head = "Current Battery Service state:\n"
    assert (
        battery_status(DUMP.replace(head, f"{head}  (UPDATES STOPPED -- use 'reset' to restart)\n"))
        == BatteryStatus()
    )


@pytest.mark.parametrize(
    ("status", "charging"), [(1, None), (2, True), (3, False), (4, False), (5, True), (9, None)]
)
def test_status_says_whether_it_charges(status: int, charging: bool | None) -> None:
    assert battery_status(f"  status: {status}\n").charging is charging


@pytest.mark.parametrize("plug", ["AC", "USB", "Wireless", "Dock"])
def test_what_it_is_plugged_into_is_read(plug: str) -> None:
    text = "".join(
        f"  {each} powered: {str(each == plug).lower()}\n" for each in ("AC", "USB", "Wireless", "Dock")
    )
    assert battery_status(text).plugged == plug.lower()


def test_a_phone_on_no_plug_says_so_and_a_cut_dump_says_nothing() -> None:
    text = "  AC powered: false\n  USB powered: false\n  Wireless powered: false\n"
    assert battery_status(text).plugged == "none"
    assert battery_status(text[: text.index("USB")]).plugged is None


def test_a_plug_that_we_do_not_know_is_not_no_plug() -> None:
    text = "  AC powered: false\n  USB powered: false\n  MOD powered: true\n"
    assert battery_status(text).plugged is None
    assert battery_status(text.replace("USB powered: false", "USB powered: true")).plugged == "usb"
    assert battery_status(text.replace("true", "false")).plugged == "none"


def test_the_first_of_a_key_counts_whatever_case_vendors_repeat_it_in() -> None:
    assert battery_status("  level: 40\n  Level: 7\n  level: 9\n").level_pct == 40


def test_an_emulators_zeros_are_no_reading() -> None:
    assert battery_status("  level: 89\n  voltage: 0\n  temperature: 0\n") == BatteryStatus(level_pct=89)


def test_a_cold_battery_may_be_at_zero_or_below() -> None:
    assert battery_status("  voltage: 3900\n  temperature: 0\n").temperature_c == 0.0
    assert battery_status("  temperature: -52\n").temperature_c == -5.2


def test_the_level_is_a_share_of_the_scale() -> None:
    assert battery_status("  level: 50\n  scale: 200\n").level_pct == 25
    assert battery_status("  level: 50\n  scale: 0\n").level_pct is None


def test_a_missing_service_says_nothing() -> None:
    assert battery_status("Can't find service: battery") == BatteryStatus()


def test_a_phone_without_a_battery_says_nothing_of_one() -> None:
    text = "Current Battery Service state:\n  status: 2\n  present: false\n  level: 100\n  scale: 100\n"
    assert battery_status(text) == BatteryStatus()
    # A box without a battery is plugged in all the same.
    assert battery_status(text + "  AC powered: true\n") == BatteryStatus(plugged="ac")


def test_a_last_line_that_may_be_cut_does_not_count() -> None:
    text = "Current Battery Service state:\n  level: 87\n  scale: 100\n  voltage: 4001\n  temperature: 301"
    assert [battery_status(text[:end]).temperature_c for end in (-2, -1, len(text))] == [None] * 3
    assert battery_status(f"{text}\n").temperature_c == 30.1
    assert battery_status(text[: text.index("7")]).level_pct is None


@pytest.mark.parametrize("tenths", ["-2732", "-999", "2147483647", "29800"])
def test_what_no_battery_can_have_is_no_temperature(tenths: str) -> None:
    assert battery_status(f"  voltage: 3900\n  temperature: {tenths}\n").temperature_c is None


def test_what_a_vendor_logs_behind_its_state_is_not_its_state() -> None:
    text = (
        "Current Battery Service state:\n  status: 3\n  level: 64\n  scale: 100\n  voltage: 3875\n"
        "  temperature: 288\n  technology: Li-poly\n  Charging state: 0\n  Charging policy: 0\n"
        "  Capacity level: 3\nAcmeBatteryService first usage time:\n  mNtpTime=177\n"
        "07-07 07:07:07.007  Sending ACTION_BATTERY_CHANGED: level:12, status:2, temperature:501\n"
    )
    assert battery_status(text) == BatteryStatus(
        level_pct=64, temperature_c=28.8, voltage_v=3.875, charging=False
    )


def test_what_a_box_without_a_battery_makes_up_is_no_temperature() -> None:
    assert battery_status("  voltage: 12\n  temperature: 27\n").temperature_c is None
    assert battery_status("  voltage: 12\n  temperature: 270\n").temperature_c == 27.0
    assert battery_status("  voltage: 3900\n  temperature: 27\n").temperature_c == 2.7


def test_oppos_own_state_before_androids_is_passed_over() -> None:
    text = (
        "Current OPPO Battery Service state:\n  Charger voltage : 4805\n  Battery current : -310\n"
        "  PlugType: 1\n  UpdatesStopped: false\n  LowBatteryVoltageWarningLevel: 3300\n\n"
        "Current Battery Service state:\n  AC powered: true\n  USB powered: false\n  status: 2\n"
        "  level: 71\n  scale: 100\n  voltage: 4102\n  temperature: 297\n"
    )
    assert battery_status(text) == BatteryStatus(
        level_pct=71, temperature_c=29.7, voltage_v=4.102, charging=True, plugged="ac"
    )


@pytest.mark.parametrize(
    ("said", "volts"),
    [("3764", 3.764), ("8410", 8.41), ("4189000", 4.189), ("0", None), ("12", None), ("-4000", None)],
)
def test_the_voltage_is_read_in_volts(said: str, volts: float | None) -> None:
    assert battery_status(DUMP.replace("voltage: 4100", f"voltage: {said}")).voltage_v == volts


@pytest.mark.parametrize(
    ("said", "health"),
    [(1, None), (2, "good"), (3, "overheat"), (5, "over voltage"), (7, "cold"), (99, None)],
)
def test_the_health_is_read_in_words(said: int, health: str | None) -> None:
    assert battery_status(DUMP.replace("  present", f"  health: {said}\n  present")).health == health
