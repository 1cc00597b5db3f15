"""The packages of each runtime's environment: versions that were tried together."""

from collections.abc import Mapping

from farm.core.models.builders import TORCH_WITH_XNNPACK

#: Installed first and alone: a resolver that meets a conflict would swap a CPU build for gigabytes of CUDA.
#: The published wheel of torchvision declares a CUDA torch; it is installed without what it declares.
_TORCH = (("torch==2.13.0",), ("--no-deps", "torchvision==0.28.0"))
_NUMPY = ("numpy==2.4.6", "pillow==13.0.0")

#: Arguments of pip, a call for each.
PINS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    "onnxruntime": (*_TORCH, (*_NUMPY, "onnx==1.23.2", "onnxruntime==1.31.1")),
    # Without most of what its wheel declares, which no export imports: 500 MB of other converters and tests.
    "executorch": (
        *_TORCH,
        ("--no-deps", "executorch==1.5.1", "torchao==0.18.0"),
        (*_NUMPY, "flatbuffers==25.12.19", "pyyaml==6.0.4", "ruamel.yaml==0.19.1", "tabulate==0.10.0"),
    ),
    "litert": (
        *_TORCH,
        (
            *("litert-torch==0.10.0", "litert-converter==0.5.0", "xdsl==0.28.0"),
            *("ai-edge-quantizer==0.10.0", "ai-edge-litert==2.3.0"),
            *_NUMPY,
        ),
    ),
    # The wheels declare more than the converter's program and the interpreter's module import.
    "ncnn": (*_TORCH, ("--no-deps", "pnnx==20261020", "ncnn==1.0.20261020"), _NUMPY),
    "mnn": (*_TORCH, ("--no-deps", "mnn==3.6.1"), (*_NUMPY, "onnx==1.23.2")),
    # zig links what TVM compiles. With tvm-ffi 0.1.15, TVM 0.27 ends with a segmentation fault when it writes
    # one of its expressions as JSON, as tuning does; its wheel was built for 0.1.14. The last three are
    # needed for tuning, and not declared.
    "tvm": (
        *_TORCH,
        (
            *("apache-tvm==0.27.0.post1", "apache-tvm-ffi==0.1.14.post1", "ziglang==0.17.1", *_NUMPY),
            *("cloudpickle==3.1.2", "psutil==7.2.2", "xgboost-cpu==3.2.0"),
        ),
    ),
}
#: It has XNNPACK, which the mobile optimizer needs; torch 2.13 for PCs has not. On Linux pip finds builds for
#: CUDA unless it is pointed to CPU builds: CUDA's libraries are of no use here, and cannot be left out.
_TORCH_WITH_XNNPACK = (("torch==2.1.2", "torchvision==0.16.2", "numpy==1.26.4", "pillow==10.4.0"),)
#: Compiles programs for phones on this machine: clang, libc++, musl and glibc's headers in one wheel.
COMPILER = "zig"
#: Of tools that are no runtimes.
TOOL_PINS: Mapping[str, tuple[tuple[str, ...], ...]] = {
    COMPILER: (("ziglang==0.17.1", "cmake==4.4.5", "ninja==1.13.2", "setuptools==84.2.1"),),
}
ENVIRONMENT_PINS = {**PINS, TORCH_WITH_XNNPACK: _TORCH_WITH_XNNPACK, **TOOL_PINS}
#: The bytes that an environment takes, and what its packages take while they are unpacked.
NEEDED_BYTES: Mapping[str, int] = {
    "onnxruntime": 2 * 10**9,
    "executorch": 2 * 10**9,
    "litert": 4 * 10**9,
    COMPILER: 10**9,
    "ncnn": 2 * 10**9,
    TORCH_WITH_XNNPACK: 8 * 10**9,
    "mnn": 2 * 10**9,
    "tvm": 3 * 10**9,
}


def pinned_versions(runtime: str) -> dict[str, str]:
    """Return name and version of each package that is pinned for a runtime or a tool."""
    requirements = (
        word.partition("==") for step in ENVIRONMENT_PINS[runtime] for word in step if "==" in word
    )
    return {name: version for name, _, version in requirements}
