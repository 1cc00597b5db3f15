"""Cores and clusters of invented phones, in the forms of real kernels."""

from farm.core.devices.device import Cluster
from farm.phone.hardware.cpu import clusters, core_by_number, hardware_line, possible_cores

BIG_LITTLE = """processor\t: 0
BogoMIPS\t: 40.00
Features\t: fp asimd
CPU implementer\t: 0x41
CPU architecture: 8
CPU variant\t: 0x1
CPU part\t: 0xd80
CPU revision\t: 1

processor\t: 1
CPU implementer\t: 0x41
CPU architecture: 8
CPU part\t: 0xd80

processor\t: 2
CPU implementer\t: 0x51
CPU architecture: 8
CPU part\t: 0x001

Hardware\t: Acme Inc SM9999
"""
#: A kernel of 32 bits before 3.8 describes its cores once.
OLD = """Processor : ARMv7 Processor rev 3 (v7l)
processor : 0
BogoMIPS : 100.0

processor : 1
BogoMIPS : 100.0

Features : swp half
CPU implementer : 0x41
CPU architecture: 7
CPU part : 0xc09

Hardware : SC9999
"""
CPUFREQ = """policy0/related_cpus:0 1
policy2/related_cpus:2
policy0/cpuinfo_min_freq:300000
policy2/cpuinfo_min_freq:500000
policy0/cpuinfo_max_freq:1700000
policy2/cpuinfo_max_freq:3300000
"""


def test_policies_make_clusters_of_named_cores() -> None:
    assert clusters(CPUFREQ, BIG_LITTLE) == (
        Cluster(cores=(0, 1), core="Cortex-A520", min_hz=300_000_000, max_hz=1_700_000_000),
        Cluster(cores=(2,), core="Oryon", min_hz=500_000_000, max_hz=3_300_000_000),
    )


def test_the_slowest_cluster_comes_first_whatever_its_numbers() -> None:
    said = "policy0/related_cpus:0-3\npolicy0/cpuinfo_max_freq:3000000\n"
    said += "policy4/related_cpus:4,5\npolicy4/cpuinfo_max_freq:2000000\n"
    assert [each.cores for each in clusters(said, "")] == [(4, 5), (0, 1, 2, 3)]


def test_cores_of_kernels_without_policies_are_joined_by_what_they_say_is_related() -> None:
    where = "/sys/devices/system/cpu"
    said = "\r\n".join(
        [
            f"{where}/cpu0/cpufreq/related_cpus:0 1",
            f"{where}/cpu0/cpufreq/cpuinfo_max_freq:1500000",
            f"{where}/cpu1/cpufreq/related_cpus:0 1",
            f"{where}/cpu1/cpufreq/cpuinfo_max_freq:1500000",
            f"{where}/cpu0/cpufreq/stats/trans_table:   From  :    To",
            f"grep: {where}/cpu2/cpufreq/related_cpus: Permission denied",
        ]
    )
    assert clusters(said, "") == (Cluster(cores=(0, 1), max_hz=1_500_000_000),)


def test_without_cpufreq_like_cores_are_a_cluster() -> None:
    assert clusters("", BIG_LITTLE) == (
        Cluster(cores=(0, 1), core="Cortex-A520"),
        Cluster(cores=(2,), core="Oryon"),
    )


def test_an_old_kernel_describes_all_cores_once() -> None:
    assert core_by_number(OLD) == {0: "Cortex-A9", 1: "Cortex-A9"}
    assert hardware_line(OLD) == "SC9999"


def test_an_unknown_core_keeps_its_numbers() -> None:
    assert core_by_number("processor: 0\nCPU implementer: 0x99\nCPU part: 0xabc\n") == {0: "0x99:0xabc"}


def test_a_core_of_x86_has_a_models_name() -> None:
    assert core_by_number("processor : 0\nvendor_id : Acme\nmodel name : Acme CPU @ 2 GHz\n") == {
        0: "Acme CPU @ 2 GHz"
    }


def test_cores_that_are_switched_off_are_possible_cores() -> None:
    assert possible_cores("0-3,6\n") == 5
    assert possible_cores("cat: Permission denied") is None


def test_a_part_that_may_be_cut_names_no_core() -> None:
    text = BIG_LITTLE[: BIG_LITTLE.index("0xd80") + len("0xd8")]
    assert core_by_number(text) == {}


def test_a_core_whose_part_is_missing_is_not_taken_for_the_one_before() -> None:
    text = BIG_LITTLE[: BIG_LITTLE.index("CPU part\t: 0x001")]
    assert core_by_number(text) == {0: "Cortex-A520", 1: "Cortex-A520"}


def test_the_architecture_of_arm_is_no_name_of_a_core() -> None:
    name = "ARMv7 Processor rev 4 (v7l)"
    assert core_by_number(f"processor\t: 0\nProcessor\t: {name}\nmodel name\t: {name}\n") == {}


def test_possible_cores_are_found_behind_an_echo_and_not_in_half_a_range() -> None:
    assert possible_cores("$ cat possible\n0-7\n") == 8
    assert [possible_cores(text) for text in ("0-", "0-\n", "0", "0-1")] == [None] * 4


def test_clocks_that_may_be_cut_are_unknown() -> None:
    said = "policy0/related_cpus:0 1\npolicy0/cpuinfo_min_freq:300000\npolicy0/cpuinfo_max_freq:1700000"
    assert clusters(said, "") == (Cluster(cores=(0, 1), min_hz=300_000_000),)


def test_a_core_that_is_told_others_than_its_own_is_with_those_it_affects() -> None:
    said = "cpu0/cpufreq/related_cpus:2 3\ncpu0/cpufreq/affected_cpus:0 1\ncpu4/cpufreq/related_cpus:9\n"
    assert [each.cores for each in clusters(said, "")] == [(0, 1), (4,)]


def test_cores_that_are_switched_off_are_not_listed() -> None:
    text = BIG_LITTLE.replace("processor\t: 2", "processor\t: 9").replace("processor\t: 0", "processor\t: 4")
    assert core_by_number(text) == {1: "Cortex-A520", 4: "Cortex-A520", 9: "Oryon"}
