"""Tables that set a delegate's claim beside a counter of the hardware: the strongest proof there is.

The Edge TPU's driver counts inferences; their difference over a run survives every silent fall back.
"""

import re
from collections.abc import Mapping

from farm.core.runs.placement import Accelerator, Placement, Share
from farm.harness.base.accelerators import accelerator_of
from farm.harness.base.log_lines import LogLine, log_lines

_MODEL = re.compile(r"^\s*---\s+(\S+)\s*$")
_ACCELERATOR = re.compile(r"^\s*accelerator\s*:\s*(\S+)")
_HEADING = re.compile(r"\bBACKEND\b.*\bDELEGATED\b.*\b(?:TPU|GPU|NPU|DSP|HW)-INF\b")
#: Backend, then numbers; delegated of all, partitions, inferences the hardware counted.
_ROW = re.compile(r"^\s*(\S+)\s+[\d.]+\s.*?\s(\d{1,7})/(\d{1,7})\s+(\d{1,6})\s+(\d{1,12})\s*$")


def counted_placements(text: str) -> Mapping[tuple[str, str], Placement]:
    """By model and backend of each row of such a table; empty where the text has none."""
    found: dict[tuple[str, str], Placement] = {}
    model, name, is_table = "", "accelerator", False
    for line in log_lines(text):
        if (match := _ACCELERATOR.match(line.text)) is not None:
            name = match[1]
        elif (match := _MODEL.match(line.text)) is not None:
            model, is_table = match[1], False
        elif _HEADING.search(line.text) is not None:
            is_table = True
        elif is_table and (match := _ROW.match(line.text)) is not None:
            found[model, match[1]] = _placement(match, name, line)
    return found


def _placement(match: re.Match[str], name: str, line: LogLine) -> Placement:
    delegated, total, partitions, counted = (int(group) for group in match.groups()[1:])
    taken = min(delegated, total)
    warnings: tuple[str, ...] = ()
    if counted > 0:
        kind, by = accelerator_of(name), name
    else:
        kind, by = Accelerator.CPU, match[1]
        if accelerator_of(match[1]) is not Accelerator.CPU:
            warnings = (f"the hardware counted no inference: {line.quoted}",)
    shares = (
        Share(accelerator=kind, by=by, nodes=taken, partitions=partitions, line=line.quoted),
        Share(accelerator=Accelerator.CPU, by="TFLite's kernels", nodes=total - taken, line=line.quoted),
    )
    return Placement(
        shares=tuple(share for share in shares if share.nodes), total_nodes=total, warnings=warnings
    )
