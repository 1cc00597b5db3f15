"""Output of Arm NN: as a library, as TFLite's delegate, and as an NNAPI driver."""

import re
from collections.abc import Sequence

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.accelerators import accelerator_of
from farm.harness.base.log_lines import LogLine, log_lines, matching_lines

#: `ArmNN v20200200` until 2020.
_BANNER = re.compile(r"\bArmNN v\d+(?:\.\d+)*", re.IGNORECASE)
#: Backends in a request, on the command line or among a delegate's options, or in a list.
_REQUESTED = re.compile(
    r"(?:backends?|preferred-backends|compute|(?<=\s)-c)[\"']?(?:[ :=]+|\s*\[)\[?[\"']?"
    r"((?:GpuAcc|CpuAcc|CpuRef|GpuFsa|EthosNAcc)(?:[ ,]+(?:GpuAcc|CpuAcc|CpuRef|GpuFsa|EthosNAcc)){0,4})"
)
_NEXT = re.compile(
    r"is not supported on requested backend (\w+)[^\n]{0,200}falling back to (?:the next|CpuRef) backend"
)
#: A delegate got names that it does not know.
_UNKNOWN = re.compile(r"Requested unknown backend (\w+)")
#: No network was made of the request.
_NOTHING = re.compile(r"is not supported on any preferred backend|None of the preferred backends")
_AGAINST = re.compile(
    rf"{_NOTHING.pattern}|is not supported on requested backend|Requested unknown backend"
    r"|not supported by armnn|backend IDs are invalid|No (?:preferred )?backends? "
    r"|backends? (?:is|are) not (?:supported|available)|Cannot find entry \S*armnn|not in the manifest"
    r"|in either framework or device manifest|Failed to (?:create|load) [^\n]*backend",
    re.IGNORECASE,
)
_MAX_WARNINGS = 5
_HARDWARE = {"GpuAcc": Accelerator.GPU, "GpuFsa": Accelerator.GPU, "EthosNAcc": Accelerator.NPU}


def armnn_placement(text: str) -> Placement | None:
    """Return which of Arm NN's backends had the model; None where the text is not Arm NN's.

    Only the requested backends and the layers that fell back to the next one are printed.
    """
    lines = log_lines(text)
    banner = next((line for line, _ in matching_lines(lines, _BANNER)), None)
    warnings = tuple(dict.fromkeys(line.quoted for line, _ in matching_lines(lines, _AGAINST)))[
        :_MAX_WARNINGS
    ]
    if banner is None:
        return Placement(shares=(), warnings=warnings) if warnings and "armnn" in text.lower() else None
    shares = _shares(lines) or (Share(accelerator=Accelerator.UNKNOWN, by="Arm NN", line=banner.quoted),)
    return Placement(shares=shares, warnings=warnings)


def _shares(lines: Sequence[LogLine]) -> tuple[Share, ...]:
    # A rejection names the backend, too.
    requests = [line for line in lines if _AGAINST.search(line.text) is None]
    request = next(((line, match) for line, match in matching_lines(requests, _REQUESTED)), None)
    if request is None or next(matching_lines(lines, _NOTHING), None) is not None:
        return ()
    unknown = {match[1] for _, match in matching_lines(lines, _UNKNOWN)}
    names = [name for name in dict.fromkeys(re.findall(r"[A-Z]\w+", request[1][1])) if name not in unknown]
    refused = {match[1]: line for line, match in matching_lines(lines, _NEXT)}
    shares = []
    for name in names:
        shares.append(
            Share(accelerator=_HARDWARE.get(name, accelerator_of(name)), by=name, line=request[0].quoted)
        )
        # The backends after one that took everything have nothing.
        if name not in refused:
            break
    return tuple(shares)
