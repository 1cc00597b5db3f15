"""Build executor_runner for this machine's CPU, from the source beside this file and the wheel `executorch`.

python harnesses/compiled/executor_runner/build.py OUT
farm harness add executor_runner OUT --env 'LD_LIBRARY_PATH=${work}/lib'
"""

import sys
from pathlib import Path

from harnesses.compiled.wheel_runner import WheelRunner, main

_LIBRARIES = (
    "executorch_backend_xnnpack",
    "executorch_kernels_optimized",
    "executorch_kernels_quantized",
    "executorch_etdump",
    "executorch_threadpool",
    "executorch",
)
#: Where the headers expect those of c10, of which the wheel has a part.
_INCLUDES = ("executorch/include", "executorch/include/executorch/runtime/core/portable_type/c10")


def _arguments(wheels: Path) -> list[str]:
    # As the libraries themselves were compiled: classes of the headers have members for the tracer.
    flags = ["-DC10_USING_CUSTOM_GENERATED_MACROS", "-DET_EVENT_TRACER_ENABLED"]
    flags += [f"-I{wheels / folder}" for folder in _INCLUDES]
    # Kernels and backends register themselves when they are loaded; nothing refers to them.
    return [
        *flags,
        f"-L{wheels / 'executorch/lib'}",
        "-Wl,--no-as-needed",
        *(f"-l{name}" for name in _LIBRARIES),
    ]


RUNNER = WheelRunner(
    name="executor_runner",
    versions={"executorch": "1.5.1"},
    sources=(Path(__file__).with_name("executor_runner.cpp"),),
    libraries={f"lib{name}.so": f"executorch/lib/lib{name}.so" for name in _LIBRARIES},
    arguments=_arguments,
)

if __name__ == "__main__":
    sys.exit(main(RUNNER))
