import pytest

from farm.core.devices.controls import (
    ControlLevel,
    Controls,
    ControlState,
    CoreKind,
    Screen,
    control_deviations,
    control_level,
    missing_controls,
    non_default_controls,
    requested_cores,
)
from farm.core.devices.device import Cluster
from farm.phone.settings import control_states, with_read_back

LITTLE, BIG, MIDDLE, PRIME = (
    Cluster(cores=cores, max_hz=max_hz)
    for cores, max_hz in [((0, 1, 2, 3), 18), ((4, 5), 24), ((6,), 28), ((7,), 30)]
)


def state(name: str, asked: str, held: str | None, after: str | None = None) -> ControlState:
    return ControlState(name=name, requested=asked, actual_before=held, actual_after=after)


@pytest.mark.parametrize(
    ("clusters", "cores_by_kind"),
    [
        ([LITTLE, BIG], {"little": (0, 1, 2, 3), "big": (4, 5), "prime": None}),
        ([LITTLE, BIG, PRIME], {"little": (0, 1, 2, 3), "big": (4, 5), "prime": (7,)}),
        ([LITTLE, BIG, MIDDLE, PRIME], {"little": (0, 1, 2, 3), "big": (4, 5, 6), "prime": (7,)}),
        # A phone whose cores are all alike, or that does not say, has none of a kind.
        ([LITTLE], {"little": None, "big": None, "prime": None}),
        ([], {"little": None, "big": None, "prime": None}),
    ],
)
def test_kinds_of_cores_are_what_a_phones_clusters_are(
    clusters: list[Cluster], cores_by_kind: dict[str, tuple[int, ...] | None]
) -> None:
    found = {kind: requested_cores(Controls(cores=kind), clusters) for kind in cores_by_kind}
    assert found == cores_by_kind


def test_a_list_of_cores_needs_no_clusters_and_any_needs_no_binding() -> None:
    assert requested_cores(Controls(cores="4-5,7"), []) == (4, 5, 7)
    assert requested_cores(Controls(cores=CoreKind.ANY), [LITTLE, BIG]) == ()


@pytest.mark.parametrize(
    ("states", "level"),
    [
        ([], ControlLevel.FREE),
        ([state("cores", "4-7", "4-7")], ControlLevel.PINNED),
        ([state("cores", "4-7", "0-7")], ControlLevel.FREE),
        ([state("policy0.governor", "performance", "performance")], ControlLevel.FIXED),
        ([state("policy0.governor", "schedutil", "schedutil")], ControlLevel.FREE),
        (
            [
                state("policy0.governor", "performance", "performance"),
                state("policy4.governor", "performance", "schedutil"),
                state("cores", "4-7", "4-7"),
            ],
            ControlLevel.PINNED,
        ),
        ([state("policy0.min_hz", "9", "9"), state("policy0.max_hz", "9", "9")], ControlLevel.FIXED),
        ([state("policy0.max_hz", "9", "9")], ControlLevel.FREE),
        ([state("cpu4.online", "0", "0")], ControlLevel.FREE),
    ],
)
def test_the_level_follows_from_what_was_read_back(states: list[ControlState], level: ControlLevel) -> None:
    assert control_level(states) is level


def test_what_does_not_hold_is_said_and_what_cannot_be_read_passes() -> None:
    assert control_deviations([state("cores", "4-7", "4-7", "4-7"), state("screen", "on", None)]) == []
    assert control_deviations([state("cores", "4-7", "4-7", "4-5")]) == [
        "cores was 4-5 after the run, 4-7 was asked for"
    ]
    assert control_deviations([state("policy0.governor", "performance", "schedutil")]) == [
        "policy0.governor is schedutil, performance was asked for"
    ]


def test_only_what_differs_from_every_runs_controls_identifies_a_series() -> None:
    assert non_default_controls(Controls()) == {}
    assert non_default_controls(Controls(cores="big", max_hz=10**9)) == {
        "control.cores": "big",
        "control.max_hz": 10**9,
    }


@pytest.mark.parametrize(
    ("controls", "root"),
    [
        (Controls(cores="big"), False),
        (Controls(screen=Screen.OFF), False),
        (Controls(governor="performance"), True),
        (Controls(max_hz=10**9), True),
        (Controls(online="0-3"), True),
    ],
)
def test_clocks_and_cores_need_root_and_the_rest_does_not(controls: Controls, root: bool) -> None:
    assert controls.needs_root is root


ROWS = """\
cpu4/online 1 0 0
cpufreq/policy0/scaling_governor schedutil performance performance
cpufreq/policy0/scaling_max_freq 1800000 1200000 1190400
cpufreq/policy4/scaling_max_freq - 1200000 -
"""


@pytest.mark.parametrize("text", [ROWS, ROWS.replace("\n", " \r\n"), "su: ok\n" + ROWS + "cpufreq/pol"])
def test_rows_of_the_script_are_states_in_hertz(text: str) -> None:
    assert control_states(text) == (
        ControlState(name="cpu4.online", requested="0", before="1", actual_before="0"),
        ControlState(
            name="policy0.governor", requested="performance", before="schedutil", actual_before="performance"
        ),
        ControlState(
            name="policy0.max_hz", requested="1200000000", before="1800000000", actual_before="1190400000"
        ),
        ControlState(name="policy4.max_hz", requested="1200000000", problem="the device does not have it"),
    )


def test_what_was_read_after_the_run_is_added_by_name() -> None:
    states = control_states("cpu4/online 1 0 0\ncpufreq/policy0/scaling_governor a b b\n")
    after = with_read_back(states, "cpufreq/policy0/scaling_governor a b c\n")
    assert [each.actual_after for each in after] == [None, "c"]


def test_what_was_asked_for_and_left_out_is_said_though_others_were_set() -> None:
    switched = ControlState(name="cpu4.online", requested="0", before="1", actual_before="0")
    assert missing_controls(Controls(online="0-3"), [switched]) == []
    assert missing_controls(Controls(online="0-3", governor="performance", max_hz=10**9), [switched]) == [
        "clocks and cores were not set: governor, max_hz"
    ]


@pytest.mark.parametrize("kind", ["little", "big", "prime"])
def test_cores_of_unknown_speed_are_of_no_kind(kind: str) -> None:
    clusters = [Cluster(cores=(0, 1)), Cluster(cores=(2, 3)), Cluster(cores=(4,))]
    assert requested_cores(Controls(cores=kind), clusters) is None
    assert requested_cores(Controls(cores="0-1"), clusters) == (0, 1)
