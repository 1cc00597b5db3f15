"""Print how long torch's lite interpreter takes to load each file: name and median seconds of 20 loads.

python examples/mobilenet_v2/load_time.py FILE...
"""

import statistics
import sys
import time

from torch.jit.mobile import _load_for_lite_interpreter

LOADS = 20


def load_time_s(path: str) -> float:
    """Return the median of the loads after a first one, which reads the file from the disk."""
    _load_for_lite_interpreter(path)
    times_s = []
    for _ in range(LOADS):
        began_s = time.perf_counter()
        _load_for_lite_interpreter(path)
        times_s.append(time.perf_counter() - began_s)
    return statistics.median(times_s)


if __name__ == "__main__":
    for path in sys.argv[1:]:
        sys.stdout.write(f"{load_time_s(path)}\n")
