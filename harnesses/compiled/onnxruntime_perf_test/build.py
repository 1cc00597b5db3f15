"""Build onnxruntime_perf_test for this machine's CPU, from the source beside this file and a wheel.

python harnesses/compiled/onnxruntime_perf_test/build.py OUT
farm harness add onnxruntime_perf_test OUT --env 'LD_LIBRARY_PATH=${work}/lib'
"""

import sys
from pathlib import Path

from harnesses.compiled.wheel_runner import WheelRunner, main

_VERSION = "1.31.1"
_LIBRARY = f"onnxruntime/capi/libonnxruntime.so.{_VERSION}"

RUNNER = WheelRunner(
    name="onnxruntime_perf_test",
    versions={"onnxruntime": _VERSION},
    sources=tuple(Path(__file__).with_name(name) for name in ("onnxruntime_perf_test.cpp", "c_interface.h")),
    # Programs look for it by the name that it states itself.
    libraries={"libonnxruntime.so.1": _LIBRARY},
    arguments=lambda wheels: [str(wheels / _LIBRARY)],
)

if __name__ == "__main__":
    sys.exit(main(RUNNER))
