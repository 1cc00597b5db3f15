"""A baseline that is noisy on its own does not hide what its variants do, nor seem to be a change of them."""

import math
from collections.abc import Mapping
from random import Random

import pytest

from farm.core.results.history.changes.detect import detect
from farm.core.results.history.changes.points import BASELINE, Cause
from tests.core.results.history.changes.histories import FIRST_DAY, Shift, Sketch

DAY, DAYS = 40, 75
NOISY, CHANGED = f"d0/n0/{BASELINE}", "d0/n0/int8"


Versions = Mapping[tuple[str, str, str, str], tuple[tuple[int, str], ...]]


def noise_of_baseline(seed: int) -> Mapping[tuple[str, int], float]:
    random = Random(seed)
    return {(NOISY, day): random.gauss(0, 0.04) for day in range(DAYS)}


def sketch(seed: int, *shifts: Shift, versions: Versions) -> Sketch:
    return Sketch(
        networks=3,
        days=DAYS,
        noise=0.008,
        wander=0.01,
        shifts=shifts,
        versions=versions,
        broken=noise_of_baseline(seed),
        seed=seed,
    )


def one_series(device: str, network: str, variant: str) -> bool:
    return f"{device}/{network}/{variant}" == CHANGED


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize(
    ("delta", "versions", "cause"),
    [(0.05, {}, Cause.DEVICE), (0.03, {("file", "d0", "n0", "int8"): ((DAY, "file-2"),)}, Cause.FILE)],
)
def test_a_step_of_a_variant_is_told_beside_a_noisy_baseline(
    seed: int, delta: float, versions: Versions, cause: Cause
) -> None:
    history = sketch(seed, Shift(day=DAY, delta=delta, holds_for=one_series), versions=versions)
    (change,) = detect(history.points())
    assert (change.series, change.cause) == (CHANGED, cause)
    assert change.delta == pytest.approx(delta, abs=0.025)
    assert abs(change.day - FIRST_DAY - DAY) <= 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_moves_all_others_of_a_device_is_no_change_beside_a_noisy_baseline(seed: int) -> None:
    others = Shift(
        day=DAY,
        delta=math.log(1.2),
        holds_for=lambda device, network, variant: device == "d0" and network != "n0",
    )
    told = detect(sketch(seed, others, versions={}).points())
    assert all(not name.startswith("d0/n0/") for change in told for name in change.evidence)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_step_of_a_noisy_baseline_is_none_of_its_variants(seed: int) -> None:
    step = Shift(day=DAY, delta=0.3, holds_for=lambda *series: "/".join(series) == NOISY)
    (change,) = detect(sketch(seed, step, versions={}).points())
    assert change.series == NOISY
