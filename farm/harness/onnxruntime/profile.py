"""ONNX Runtime's profile: times by operator, and the execution provider of each node.

A list of events as JSON, in the form of Chrome's traces (onnxruntime, core/common/profiler.cc): `cat`,
`name`, `ts` and `dur` in microseconds, and `args`. An event `<node>_kernel_time` of the category `Node` is
one run of a node, whose `args` have `op_name` and `provider`; `model_run` of the category `Session` is one
inference.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from farm.core.runs.derived.operator_times import (
    MOST_PROFILE_BYTES,
    OperatorTime,
    operators_text,
    printable_operator,
    slowest_operators,
)
from farm.core.runs.placement import Placement, Share, placement_proof
from farm.harness.onnxruntime.placement import provider_hardware

#: Begins the names of its files; the session adds the time of day.
PROFILE = "onnxruntime_profile"
FILES = f"{PROFILE}_*.json"
_KERNEL, _RUN = "_kernel_time", "model_run"
_LONGEST_US = 86_400e6


@dataclass(frozen=True, slots=True, kw_only=True)
class OrtProfile:
    """What a profile shows."""

    #: Most time first.
    operators: Sequence[OperatorTime]
    #: For each provider, how many nodes of each operator it ran.
    nodes_by_provider: Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    name: str
    ts_us: float
    dur_us: float
    operator: str
    provider: str


def ort_profile(data: bytes) -> OrtProfile | None:
    """Parse a profile; None where the bytes are none, or show no node.

    Times are a mean over all inferences but the first, where there are more: it allocates, and packs weights.
    """
    events = list(_events(data))
    kernels = [event for event in events if event.name != _RUN]
    if not kernels:
        return None
    runs = sorted((event for event in events if event.name == _RUN), key=lambda event: event.ts_us)
    begin_us = runs[0].ts_us + runs[0].dur_us if len(runs) > 1 else 0.0
    counted = [event for event in kernels if event.ts_us >= begin_us] or kernels
    inferences = max(1, len(runs) - 1)
    us_by_operator: dict[str, float] = {}
    for event in counted:
        us_by_operator[event.operator] = us_by_operator.get(event.operator, 0.0) + event.dur_us
    nodes = {event.name: event for event in kernels}
    count_by_operator = Counter(event.operator for event in nodes.values())
    by_provider: dict[str, Counter[str]] = {}
    for event in nodes.values():
        by_provider.setdefault(event.provider, Counter())[event.operator] += 1
    return OrtProfile(
        operators=slowest_operators(
            OperatorTime(operator=operator, count=count_by_operator[operator], ms=us / 1e3 / inferences)
            for operator, us in us_by_operator.items()
        ),
        nodes_by_provider=by_provider,
    )


def profile_placement(profile: OrtProfile, text: str = "") -> Placement:
    """Return where the nodes of a profile ran; partitions that a provider compiled are one node each.

    Args:
        profile: of the pass.
        text: what the run printed, which may name the hardware behind a provider.
    """
    counts = {provider: sum(nodes.values()) for provider, nodes in profile.nodes_by_provider.items()}
    total = sum(counts.values())
    return Placement(
        shares=tuple(
            Share(
                accelerator=provider_hardware(provider, text),
                by=provider,
                nodes=counts[provider],
                line=f"profile: {counts[provider]} of {total} nodes by {provider}: {operators_text(nodes)}",
            )
            for provider, nodes in profile.nodes_by_provider.items()
        ),
        total_nodes=total,
    )


def with_profile(placement: Placement | None, profile: OrtProfile | None, text: str) -> Placement | None:
    """Return what log and profile show together.

    The log counts nodes of the network and names hardware, so its counts stay where the profile shows the
    same providers. Where it shows others, it is the profile that counts: the log has what was planned.
    """
    if profile is None:
        return placement
    profiled = profile_placement(profile, text)
    if placement is None or not placement.shares:
        return replace(profiled, warnings=() if placement is None else placement.warnings)
    line_by_provider = {_provider_of(share): share.line for share in profiled.shares}
    logged = {_provider_of(share) for share in placement.shares if share.nodes != 0}
    if line_by_provider.keys() != logged:
        warning = f"the log shows other providers: {placement_proof(placement)}"
        return replace(profiled, warnings=(warning, *placement.warnings))
    shares = (
        replace(share, line=f"{share.line}; {line_by_provider[_provider_of(share)]}")
        if share.nodes != 0
        else share
        for share in placement.shares
    )
    return replace(placement, shares=tuple(shares))


def _provider_of(share: Share) -> str:
    """Return the provider of a share: `NNAPIExecutionProvider (eu-npu)` names a driver, too."""
    return share.by.partition(" ")[0].lower()


def _events(data: bytes) -> Iterator[_Event]:
    """Yield runs of nodes and inferences; whatever is malformed is left out."""
    if len(data) > MOST_PROFILE_BYTES:
        return
    try:
        document = json.loads(data)
    except (ValueError, RecursionError):
        return
    for item in document if isinstance(document, list) else ():
        event = _event(item) if isinstance(item, dict) else None
        if event is not None:
            yield event


def _event(item: Mapping[str, object]) -> _Event | None:
    name, arguments, ts_us, dur_us = (item.get(key) for key in ("name", "args", "ts", "dur"))
    if not isinstance(name, str) or not _is_time(ts_us) or not _is_time(dur_us):
        return None
    assert isinstance(ts_us, int | float)
    assert isinstance(dur_us, int | float)
    if name == _RUN and item.get("cat") == "Session":
        return _Event(name=name, ts_us=ts_us, dur_us=dur_us, operator="", provider="")
    if item.get("cat") != "Node" or not name.endswith(_KERNEL) or not isinstance(arguments, dict):
        return None
    operator, provider = arguments.get("op_name"), arguments.get("provider")
    if not isinstance(operator, str) or not isinstance(provider, str) or not operator or not provider:
        return None
    return _Event(
        name=name,
        ts_us=ts_us,
        dur_us=dur_us,
        operator=printable_operator(operator),
        provider=printable_operator(provider),
    )


def _is_time(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < _LONGEST_US
