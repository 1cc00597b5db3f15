"""The hardware behind the names of drivers, delegates and providers."""

import re
from collections.abc import Mapping
from types import MappingProxyType

from farm.core.runs.placement import Accelerator

_SPLIT = re.compile(r"[^a-z0-9]+")
#: Where the words of one name meet: `CPUExecution`, `XnnpackBackend`.
_GLUE = re.compile(r"(?<=[A-Za-z0-9])(?=[A-Z][a-z])|(?<=[a-z])(?=[A-Z])")

#: `qti-default` lets the driver choose for each operation, so the name identifies nothing; nor does `armnn`.
_BY_NAME: Mapping[str, Accelerator] = MappingProxyType(
    {
        "qti-default": Accelerator.UNKNOWN,
        "google-edgetpu": Accelerator.NPU,
        "nnapi-reference": Accelerator.CPU,
        "armnn": Accelerator.UNKNOWN,
    }
)
#: The first kind with a word of the name decides, so the unambiguous words stand first.
_BY_WORD: Mapping[Accelerator, frozenset[str]] = MappingProxyType(
    {
        Accelerator.CPU: frozenset(
            [
                "cpu",
                "reference",
                # Android's sample drivers, in emulators.
                "sample",
                "ref",
                "cpuref",
                "cpuacc",
                "neon",
                "xnnpack",
                "xnn",
                "acl",
                "dnnl",
                "mlas",
                "kleidi",
                "flex",
                "swiftshader",
                "llvmpipe",
                "lavapipe",
                "portable",
            ]
        ),
        Accelerator.DSP: frozenset(["dsp", "hexagon", "hvx", "cdsp"]),
        Accelerator.NPU: frozenset(
            [
                "npu",
                "tpu",
                "edgetpu",
                "darwinn",
                "hta",
                "htp",
                "htp0",
                "mdla",
                "neuron",
                "apu",
                "vpu",
                "edpa",
                "enn",
                "eden",
                "ipu",
                "ipuadaptor",
                "ipuadapter",
                "paintbox",
                "hiai",
                "ane",
                "rknpu",
                "rknpu2",
                "vsinpu",
                "ethos",
                "ethosu",
                "neutron",
                "dispatch",
                "vitis",
            ]
        ),
        Accelerator.GPU: frozenset(
            [
                "gpu",
                "gpuacc",
                "opencl",
                "opengl",
                "opengles",
                "gles",
                "cl",
                "gl",
                "vulkan",
                "vk",
                "webgpu",
                "metal",
                "mps",
                "cuda",
                "tensorrt",
                "dml",
                "mali",
                "adreno",
                "powervr",
                "xclipse",
            ]
        ),
    }
)


def accelerator_of(name: str) -> Accelerator:
    """Return the hardware behind a driver, delegate or provider; unknown without a known word."""
    plain = name.strip().lower()
    exact = _BY_NAME.get(plain.removesuffix("_shim").removesuffix("-shim"))
    if exact is not None:
        return exact
    parts = [*_SPLIT.split(_GLUE.sub("-", name.strip()).lower()), *_SPLIT.split(plain)]
    words = {part.removeprefix("lib") for part in parts if part}
    return next((kind for kind, kind_words in _BY_WORD.items() if words & kind_words), Accelerator.UNKNOWN)
