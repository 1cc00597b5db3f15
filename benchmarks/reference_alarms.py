"""How often reference runs raise a false alarm: simulated devices that do not change.

    python -m benchmarks.reference_alarms [HISTORIES]

Each history is learned from, then further runs of the same device are judged: one that is fast is an alarm,
and so is one that is slow twice in a row. `before` is the rule that the present one replaced: four robust
standard deviations around the median, from eight runs on.
"""

import math
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from statistics import median

from farm.core.checks.reference_range import (
    MAX_RUNS_ALONE,
    MIN_RUNS,
    MIN_RUNS_ALONE,
    ReferenceSample,
    learn_reference_range,
)

_NOW = datetime(2026, 1, 1, tzinfo=UTC)
#: The deviation of one run, in logarithms.
Noise = Callable[[Random], float]


def _normal(scatter: float) -> Noise:
    return lambda random: random.gauss(0.0, scatter)


def _restless(random: Random) -> float:
    """Return the deviation on a machine with other work, which 40 % of the runs meet; it only adds time."""
    return random.gauss(0.0, 0.03) + (random.expovariate(2.0) if random.random() < 0.4 else 0.0)


NOISES: dict[str, Noise] = {
    "2 % normal": _normal(0.02),
    "10 % normal": _normal(0.1),
    "45 % normal": _normal(0.45),
    "restless": _restless,
}
#: Devices, and runs of each.
SIZES = ((1, MIN_RUNS), (1, MIN_RUNS_ALONE), (1, MAX_RUNS_ALONE), (2, 4), (4, 8))


def _range_before(logs_by_device: Sequence[Sequence[float]]) -> tuple[float, float]:
    off = [abs(value - median(own)) for own in logs_by_device for value in own]
    center = median(value for own in logs_by_device for value in own)
    half = max(math.log(1.15), 4.0 * 1.4826 * median(off))
    return center - half, center + half


def _range_now(logs_by_device: Sequence[Sequence[float]]) -> tuple[float, float] | None:
    samples = [
        ReferenceSample(device=device, value_ns=1e8 * math.exp(value), at=_NOW - timedelta(days=place))
        for device, own in enumerate(logs_by_device)
        for place, value in enumerate(own)
    ]
    found = learn_reference_range(samples)
    return None if found is None else (math.log(found.lower_ns / 1e8), math.log(found.upper_ns / 1e8))


def _is_alarm(further: tuple[float, float], learned: tuple[float, float]) -> bool:
    return further[0] < learned[0] or min(further) > learned[1]


def main(histories: int) -> None:
    """Print the share of histories that end in an alarm, for each noise and size."""
    sys.stdout.write(f"{'noise':12} {'devices':>7} {'runs':>5} {'before':>8} {'now':>8} {'half width':>10}\n")
    for name, noise in NOISES.items():
        for devices, each in SIZES:
            random, before, now, widths = Random(f"{name} {devices} {each}"), 0, 0, list[float]()
            for _ in range(histories):
                logs = [[noise(random) for _ in range(each)] for _ in range(devices)]
                further = noise(random), noise(random)
                before += _is_alarm(further, _range_before(logs))
                if (learned := _range_now(logs)) is not None:
                    now += _is_alarm(further, learned)
                    widths.append(math.expm1((learned[1] - learned[0]) / 2))
            rate = f"{now / histories:8.2%} {median(widths):10.0%}" if widths else f"{'none':>8} {'-':>10}"
            sys.stdout.write(f"{name:12} {devices:7} {devices * each:5} {before / histories:8.2%} {rate}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5000)
