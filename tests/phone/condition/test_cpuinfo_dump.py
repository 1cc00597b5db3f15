import pytest

from farm.phone.condition.cpuinfo_dump import ProcessCpuLoad, cpu_load

TABLE = """\
Load: 11.32 / 9.8 / 4.01
CPU usage from 61234ms to 12ms ago (2031-02-03 04:05:06.789 to 2031-02-03 04:06:08.011):
  3.5% 2011/com.example.sync: 2.1% user + 1.4% kernel / faults: 812 minor
  88% 1402/system_server: 50% user + 38% kernel / faults: 9 minor 1 major
 +0% 3100/kworker/u16:2: 0% user + 0% kernel
  1.2% 77/[irq/1-some thing]: 0% user + 1.2% kernel
24% TOTAL: 15% user + 8.1% kernel + 0.4% iowait
"""


@pytest.mark.parametrize("prefix", ["", "02-03 04:06:08.100 E/ActivityManager( 1402): "])
def test_processes_come_with_the_busiest_first(prefix: str) -> None:
    found = cpu_load("".join(f"{prefix}{line}\r\n" for line in TABLE.splitlines()))
    assert found == (
        ProcessCpuLoad(pid=1402, name="system_server", busy_pct=88.0),
        ProcessCpuLoad(pid=2011, name="com.example.sync", busy_pct=3.5),
        ProcessCpuLoad(pid=77, name="[irq/1-some thing]", busy_pct=1.2),
        ProcessCpuLoad(pid=3100, name="kworker/u16:2", busy_pct=0.0),
    )


def test_a_table_that_is_cut_keeps_its_whole_rows() -> None:
    cut = cpu_load(TABLE[: TABLE.index("50% user")])
    assert [user.name for user in cut] == ["com.example.sync"]


def test_a_phone_that_denies_it_says_nothing() -> None:
    assert cpu_load("Permission Denial: can't dump cpuinfo from pid=1, uid=2000\n") == ()


LATER = """\
CPU usage from 540ms to 1071ms later with 99% awake:
  31% 1402/system_server: 20% user + 11% kernel
    18% 1466/InputDispatcher: 10% user + 8% kernel
    +4% 1470/Binder Thread #: 4% user + 0% kernel
 -7.5% 4002/com.example.gone: 7.5% user + 0% kernel
52% TOTAL: 31% user + 21% kernel
"""


@pytest.mark.parametrize("prefix", ["", "E/ActivityManager( 1402): "])
def test_a_processs_threads_are_not_users_of_their_own(prefix: str) -> None:
    found = cpu_load("".join(f"{prefix}{line}\n" for line in LATER.splitlines()))
    assert [(user.pid, user.busy_pct) for user in found] == [(1402, 31.0), (4002, 7.5)]


def test_of_two_tables_the_first_counts() -> None:
    assert cpu_load(TABLE + LATER) == cpu_load(TABLE)
    cut = TABLE[: TABLE.index("24% TOTAL")]
    assert cpu_load(cut + LATER) == cpu_load(cut)
