"""Build benchmark_model for this machine's CPU, from the source beside this file and a wheel of LiteRT.

pip install --no-deps ai-edge-litert==2.3.0
python harnesses/compiled/benchmark_model/build.py OUT
farm harness add benchmark_model OUT --env 'LD_LIBRARY_PATH=${work}/lib'
"""

import sys
from pathlib import Path

from harnesses.compiled.wheel_runner import WheelRunner, main

_LIBRARY = "ai_edge_litert/libLiteRt.so"

RUNNER = WheelRunner(
    name="benchmark_model",
    versions={"ai-edge-litert": "2.3.0"},
    sources=tuple(Path(__file__).with_name(name) for name in ("benchmark_model.cpp", "c_interface.h")),
    libraries={"libLiteRt.so": _LIBRARY},
    arguments=lambda wheels: [str(wheels / _LIBRARY)],
)

if __name__ == "__main__":
    sys.exit(main(RUNNER))
