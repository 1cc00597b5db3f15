import pytest

from farm.phone.hardware.proc import core_count_of_nproc, load_1m, memory_bytes, uptime_s


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_memory_is_kilobytes_made_bytes(end: str) -> None:
    text = end.join(["MemTotal:        7654321 kB", "MemFree:  1 kB", "MemAvailable:    4000000 kB", ""])
    assert memory_bytes(text, "MemTotal") == 7654321 * 1024
    assert memory_bytes(text, "MemAvailable") == 4000000 * 1024
    assert memory_bytes(text, "SwapTotal") is None


def test_load_and_uptime_are_their_first_figures() -> None:
    assert load_1m("2.51 1.20 0.90 3/1234 5678\n") == 2.51
    assert uptime_s("12345.67 98765.43\n") == 12345.67


@pytest.mark.parametrize("text", ["", "cat: /proc/loadavg: Permission denied", "cat /proc/uptime", "1.0"])
def test_a_refusal_is_no_figure(text: str) -> None:
    assert load_1m(text) is None
    assert uptime_s(text) is None
    assert memory_bytes(text, "MemTotal") is None


def test_nproc_is_the_fallback() -> None:
    assert core_count_of_nproc("8\n") == 8
    assert core_count_of_nproc("nproc: not found") is None
