"""The hardware behind the names of drivers, delegates and providers."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from farm.core.runs.placement import Accelerator, Placement
from farm.harness.base.log_lines import LogLine, matching_lines

_SPLIT = re.compile(r"[^a-z0-9]+")
#: Boundary between the words of one name: `CPUExecution`, `XnnpackBackend`.
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
#: The first kind with a word of the name decides, so the unambiguous words stand first. `sample` is of
#: Android's sample drivers, in emulators.
_WORDS = {
    Accelerator.CPU: """
    cpu reference sample ref cpuref cpuacc neon xnnpack xnn acl dnnl mlas kleidi flex swiftshader llvmpipe
    lavapipe portable
    """,
    Accelerator.DSP: "dsp hexagon hvx cdsp",
    Accelerator.NPU: """
    npu tpu edgetpu darwinn hta htp htp0 mdla neuron apu vpu edpa enn eden ipu ipuadaptor ipuadapter paintbox
    hiai ane rknpu rknpu2 vsinpu ethos ethosu neutron dispatch vitis
    """,
    Accelerator.GPU: """
    gpu gpuacc opencl opengl opengles gles cl gl vulkan vk webgpu metal mps cuda tensorrt dml mali adreno
    powervr xclipse
    """,
}
_NOT = r"(?:fail(?:ed|s)?(?: to)?|unable to|could not|couldn't|cannot|can't)"
#: After one of these an accelerator did not run what was planned for it: its context was not restored, or the
#: execution failed. A tool may still end well, because something else did the work.
_DID_NOT_RUN = re.compile(
    rf"\b{_NOT} (?:be )?(?:restor|deserializ)\w*\b"
    r"|\b(?:restor|deserializ)\w* (?:[\w-]{1,40} ){0,3}fail(?:ed|s|ure)?\b"
    rf"|\b{_NOT} (?:create|interpret|load|register|retrieve)"
    # OpenGL is one of two ways to a GPU.
    r" (?:(?!E?GL |OpenGL )[\w-]{1,40} ){0,3}context\b"
    rf"|\b{_NOT} execut\w* (?:the )?(?:\w{{1,40}} )?(?:graph|network|method|model|partition)\b"
    r"|\bgraph execut\w* (?:error|fail)|\bexecution failed\b|Delegate\w{0,10}\) failed to invoke",
    re.IGNORECASE,
)
#: The end of the name of software that did not run what was planned for it.
FAILED = ", which failed"
_BY_WORD = {accelerator: frozenset(words.split()) for accelerator, words in _WORDS.items()}


def accelerator_of(name: str) -> Accelerator:
    """Return the hardware behind a driver, delegate or provider; unknown without a known word."""
    plain = name.strip().lower()
    exact = _BY_NAME.get(plain.removesuffix("_shim").removesuffix("-shim"))
    if exact is not None:
        return exact
    parts = [*_SPLIT.split(_GLUE.sub("-", name.strip()).lower()), *_SPLIT.split(plain)]
    words = {part.removeprefix("lib") for part in parts if part}
    return next((kind for kind, kind_words in _BY_WORD.items() if words & kind_words), Accelerator.UNKNOWN)


def failed_execution(lines: Sequence[LogLine]) -> str | None:
    """Return the first line after which an accelerator did not run what was planned for it, or None."""
    return next((line.quoted for line, _ in matching_lines(lines, _DID_NOT_RUN)), None)


def without_failed(placement: Placement | None, lines: Sequence[LogLine]) -> Placement | None:
    """Return the placement with unknown hardware for what was planned for an accelerator that failed."""
    failed = failed_execution(lines)
    if placement is None or failed is None:
        return placement
    shares = tuple(
        share
        if share.accelerator is Accelerator.CPU or share.by.endswith(FAILED)
        else replace(
            share,
            accelerator=Accelerator.UNKNOWN,
            by=f"{share.by}{FAILED}",
            line="; ".join(dict.fromkeys((share.line, failed))),
        )
        for share in placement.shares
    )
    warnings = tuple(dict.fromkeys((failed, *placement.warnings)))
    return replace(placement, shares=shares, warnings=warnings)
