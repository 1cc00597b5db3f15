"""Build tvm_benchmark for this machine's CPU, from the source beside this file and the wheels of TVM.

pip install --no-deps apache-tvm==0.27.0.post1 apache-tvm-ffi==0.1.14.post1
python harnesses/compiled/tvm_benchmark/build.py OUT
farm harness add tvm_benchmark OUT --env 'LD_LIBRARY_PATH=${work}/lib'
"""

import sys
from pathlib import Path

from harnesses.compiled.wheel_runner import WheelRunner, main

_LINKED = {"libtvm_runtime.so": "tvm/lib/libtvm_runtime.so", "libtvm_ffi.so": "tvm_ffi/lib/libtvm_ffi.so"}
#: Loaded for sessions of RPC only: what TVM's tuner calls there.
_LOADED = {"libtvm_runtime_extra.so": "tvm/lib/libtvm_runtime_extra.so"}
_INCLUDES = ("tvm_ffi/include", "tvm_ffi/3rdparty/dlpack/include")


def _arguments(wheels: Path) -> list[str]:
    # The virtual machine registers itself when it is loaded; nothing refers to it.
    linked = ["-Wl,--no-as-needed", *(str(wheels / path) for path in _LINKED.values())]
    return [*(f"-I{wheels / folder}" for folder in _INCLUDES), *linked]


RUNNER = WheelRunner(
    name="tvm_benchmark",
    versions={"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"},
    sources=tuple(map(Path(__file__).with_name, ("tvm_benchmark.cpp", "rpc_server.cpp", "rpc_server.h"))),
    libraries={**_LINKED, **_LOADED},
    arguments=_arguments,
)

if __name__ == "__main__":
    sys.exit(main(RUNNER))
