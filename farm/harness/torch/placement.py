"""Placements of PyTorch Mobile: its own output names no hardware, drivers in the device's log do."""

import re

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.log_lines import log_lines, matching_lines
from farm.harness.nnapi.placement import nnapi_placement

#: Vulkan drivers by their log tags: Qualcomm, Arm, Imagination, Samsung.
_GPU_DRIVER = re.compile(
    r"\b(AdrenoVK(?:-\d+)?|Adreno(?:-GSL)?|mali(?=\s*:)|Mali[- ]G?\d+|PVR_VK|PowerVR|Xclipse)\b"
)
#: Vulkan computed by the CPU, as in emulators.
_CPU_DRIVER = re.compile(r"\b(SwiftShader|llvmpipe|lavapipe)\b", re.IGNORECASE)
_NO_VULKAN = re.compile(
    r"(?:not linked with support for|failed to (?:create|initialize)|Couldn't find|no) vulkan"
    r"|got VULKAN|from the 'Vulkan' backend|Vulkan is not available",
    re.IGNORECASE,
)


def pytorch_nnapi_placement(log: str, pid: int | None = None) -> Placement | None:
    """Return the placement in a pass with `debug.nn.vlog`, which alone shows the drivers of an NNAPI run."""
    return nnapi_placement(log, pid)


def pytorch_vulkan_placement(log: str, pid: int | None = None) -> Placement | None:
    """Return the loaded Vulkan driver. PyTorch never falls back from it: a missing operator ends the run."""
    lines = [line for line in log_lines(log) if pid is None or line.pid in (pid, None)]
    warnings = tuple(line.quoted for line, _ in matching_lines(lines, _NO_VULKAN))[:5]
    for pattern, kind in ((_CPU_DRIVER, Accelerator.CPU), (_GPU_DRIVER, Accelerator.GPU)):
        for line, match in matching_lines(lines, pattern):
            share = Share(accelerator=kind, by=match[1], line=line.quoted)
            return Placement(shares=(share,), warnings=warnings)
    return Placement(shares=(), warnings=warnings) if warnings else None
