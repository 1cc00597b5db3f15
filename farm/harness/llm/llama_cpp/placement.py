"""Where llama.cpp put the layers of a model, by the log of its loading (`-v`)."""

import re
from collections import Counter
from collections.abc import Mapping

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.accelerators import accelerator_of, without_failed
from farm.harness.base.log_lines import log_lines

#: Of a record; both are in every version. Without quotes inside: a name with one is not read.
_BACKENDS = re.compile(r'"gpu_info": "([^"\\\n]{0,200})", "backends": "([\w, ]{1,100})"')
_LAYER = re.compile(r"load_tensors: layer {1,3}([0-9]{1,5}) assigned to device ([\w:.-]{1,60}),")
#: Behind the name of a device: `Vulkan0`, `HTP0:1`.
_NUMBER = re.compile(r"[0-9]+(?::[0-9]+)?$")
_CPU = "CPU"


def llama_placement(text: str) -> Placement | None:
    """Return the share of each device in the layers; None where the output does not show it.

    A layer's weights lie on its device. An operator without code for that device runs on the CPU, uncounted.
    """
    found = _BACKENDS.search(text)
    if found is not None and found[2] == _CPU:
        line = f'"backends": "{_CPU}"'
        return Placement(shares=(Share(accelerator=Accelerator.CPU, by="llama.cpp", line=line),))
    device_by_layer = {int(match[1]): match[2] for match in _LAYER.finditer(text)}
    if not device_by_layer:
        return None
    gpus = "" if found is None else found[1]
    return without_failed(_placement(device_by_layer, gpus), log_lines(text))


def _placement(device_by_layer: Mapping[int, str], gpus: str) -> Placement:
    total = len(device_by_layer)
    shares = tuple(
        Share(
            accelerator=_accelerator(device, gpus),
            by=device,
            nodes=layers,
            line=f"{layers} of {total} layers assigned to device {device}",
        )
        for device, layers in Counter(device_by_layer.values()).items()
    )
    return Placement(shares=shares, total_nodes=total)


def _accelerator(device: str, gpus: str) -> Accelerator:
    """Return the hardware of a device; a GPU of software is the CPU, by the name of its driver."""
    kind = accelerator_of(_NUMBER.sub("", device))
    if kind is Accelerator.GPU and gpus and accelerator_of(gpus) is Accelerator.CPU:
        return Accelerator.CPU
    return kind
