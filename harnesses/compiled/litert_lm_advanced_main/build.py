"""Build litert_lm_advanced_main for this machine's CPU, from the source beside this file and a wheel.

pip install --no-deps litert-lm-api==0.18.1
python harnesses/compiled/litert_lm_advanced_main/build.py OUT
farm harness add litert_lm_advanced_main OUT --env 'LD_LIBRARY_PATH=${work}/lib'
"""

import sys
from pathlib import Path

from harnesses.compiled.wheel_runner import WheelRunner, main

_NAME = "litert_lm_advanced_main"
_FOLDER, _LIBRARY = "litert_lm", "liblitert-lm.so"

RUNNER = WheelRunner(
    name=_NAME,
    versions={"litert-lm-api": "0.18.1"},
    sources=tuple(Path(__file__).with_name(name) for name in (f"{_NAME}.cpp", "c_interface.h")),
    libraries={_LIBRARY: f"{_FOLDER}/{_LIBRARY}"},
    # By its file's name: the library states no other.
    arguments=lambda wheels: [f"-L{wheels / _FOLDER}", f"-l:{_LIBRARY}"],
)

if __name__ == "__main__":
    sys.exit(main(RUNNER))
