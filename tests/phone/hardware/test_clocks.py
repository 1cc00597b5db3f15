import pytest

from farm.core.devices.condition import CpuPolicy
from farm.phone.hardware.clocks import clocks

POLICIES = """\
online:0-3,6-7
cpufreq/policy0/related_cpus:0 1 2 3
cpufreq/policy4/related_cpus:4 5 6 7
cpufreq/policy0/scaling_governor:schedutil
cpufreq/policy4/scaling_governor:performance
cpufreq/policy0/scaling_cur_freq:556800
cpufreq/policy4/scaling_cur_freq:2112000
cpufreq/policy0/scaling_max_freq:1862400
cpufreq/policy0/scaling_min_freq:300000
cpufreq/policy4/scaling_max_freq:2112000
cpufreq/policy0/cpuinfo_max_freq:1862400
cpufreq/policy0/cpuinfo_min_freq:300000
cpufreq/policy4/cpuinfo_max_freq:2745600
cpufreq/policy0/stats/time_in_state:300000 51234
cpufreq/policy0/stats/time_in_state:1862400 77
/sys/class/kgsl/kgsl-3d0/gpu_busy_percentage:17 %
"""
LITTLE = CpuPolicy(
    name="policy0",
    cores=(0, 1, 2, 3),
    governor="schedutil",
    current_hz=556_800_000,
    min_hz=300_000_000,
    max_hz=1_862_400_000,
    hardware_min_hz=300_000_000,
    hardware_max_hz=1_862_400_000,
    time_in_state_ms={300_000_000: 512_340, 1_862_400_000: 770},
)
BIG = CpuPolicy(
    name="policy4",
    cores=(4, 5, 6, 7),
    governor="performance",
    current_hz=2_112_000_000,
    max_hz=2_112_000_000,
    hardware_max_hz=2_745_600_000,
)


@pytest.mark.parametrize("text", [POLICIES, POLICIES.replace("\n", "\r\n"), "su: hi\n" + POLICIES + "x"])
def test_policies_have_their_cores_limits_and_times(text: str) -> None:
    found = clocks(text)
    assert found.cpus == (LITTLE, BIG)
    assert found.online == (0, 1, 2, 3, 6, 7)
    assert found.gpu_busy_pct == 17.0


def test_of_an_old_kernels_folders_of_cores_each_policy_is_told_once() -> None:
    text = "".join(
        f"/sys/devices/system/cpu/cpu{core}/cpufreq/related_cpus:{cores}\n"
        f"/sys/devices/system/cpu/cpu{core}/cpufreq/cpuinfo_max_freq:{khz}\n"
        for core, cores, khz in [
            (0, "0 1", 1_400_000),
            (1, "0 1", 1_400_000),
            (2, "2 3", 1_900_000),
            (3, "2 3", 1_900_000),
        ]
    )
    assert [(each.name, each.cores, each.hardware_max_hz) for each in clocks(text).cpus] == [
        ("policy0", (0, 1), 1_400_000_000),
        ("policy2", (2, 3), 1_900_000_000),
    ]


def test_a_phone_that_hides_its_clocks_says_nothing() -> None:
    denied = clocks("grep: cpufreq/policy0/scaling_cur_freq: Permission denied\n")
    assert (denied.cpus, denied.online, denied.gpu_busy_pct) == ((), (), None)


def test_a_line_that_is_cut_keeps_what_is_whole() -> None:
    cut = clocks(POLICIES[: POLICIES.index("policy4/scaling_cur_freq") + 12])
    assert cut.cpus[0].current_hz == 556_800_000
    assert cut.cpus[1].governor == "performance"
    assert cut.cpus[1].current_hz is None


@pytest.mark.parametrize(
    ("line", "busy_pct"),
    [
        ("/sys/class/kgsl/kgsl-3d0/gpu_busy_percentage:42 %", 42.0),
        ("/sys/kernel/gpu/gpu_busy:8%", 8.0),
        ("/sys/class/kgsl/kgsl-3d0/gpubusy: 25000  100000", 25.0),
        ("/sys/class/kgsl/kgsl-3d0/gpubusy:      0       0", None),
        ("/sys/class/misc/mali0/device/utilization:63", 63.0),
        ("/sys/class/misc/mali0/device/dvfs_utilization:busy_time: 300 idle_time: 900 protm_time: 0", 25.0),
        ("/sys/class/devfreq/13000000.mali/load:55@702000000Hz", 55.0),
        ("/sys/class/misc/mali0/device/utilization:900", None),
        ("/sys/kernel/ged/hal/gpu_utilization:31 2 67", 31.0),
        ("   /sys/kernel/gpu/gpu_busy:8 %", 8.0),
    ],
)
def test_each_gpu_says_in_its_own_way_how_busy_it_is(line: str, busy_pct: float | None) -> None:
    assert clocks(f"{line}\n").gpu_busy_pct == busy_pct


def test_a_core_that_an_old_kernel_tells_others_of_stands_for_itself() -> None:
    folder = "/sys/devices/system/cpu/cpu0/cpufreq"
    text = f"{folder}/related_cpus:2 3\n{folder}/affected_cpus:0\n{folder}/cpuinfo_max_freq:1100000\n"
    (found,) = clocks(text).cpus
    assert (found.name, found.cores, found.hardware_max_hz) == ("policy0", (0,), 1_100_000_000)
