"""Placement of a model's parts on hardware, with the lines that show it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType


class Accelerator(StrEnum):
    """Hardware that runs operators."""

    CPU = "cpu"
    GPU = "gpu"
    #: A neural processor: Edge TPU, HTP, MDLA, APU, ENN.
    NPU = "npu"
    DSP = "dsp"
    #: Nothing shows it.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The part of a model that one piece of software took, and the hardware that it runs on."""

    accelerator: Accelerator
    #: Software as the log names it: `XNNPACK`, `qti-dsp`, `VulkanBackend`, `NNAPIExecutionProvider`.
    by: str
    #: Nodes or operators, as the tool counts them; None where it does not say.
    nodes: int | None = None
    partitions: int | None = None
    #: The line that shows it, as it stands in the evidence.
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """The hardware that ran a model, by evidence. Nodes that no delegate took are a share of the CPU."""

    shares: tuple[Share, ...]
    #: Of the whole model, in the same count as the shares'; None where the tool does not say.
    total_nodes: int | None = None
    #: Evidence against it, or that qualifies it: a fallback, a delegate that was not created, each as a line.
    warnings: Sequence[str] = ()
    #: Accelerators that NNAPI's runtime named as there for models, in its order; who took none, too.
    offered: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ActualBackend:
    """The backend that ran; `cpu` where another was requested is a fall back."""

    backend: str
    accelerator: Accelerator
    proof: str


#: Backends that are the CPU's, whichever library computes.
CPU_BACKENDS = frozenset(
    {"cpu", "xnnpack", "cpuacc", "cpuref", "armnn-cpu", "portable", "acl", "mlas", "neon"}
)
_XNNPACK = "xnnpack"
#: Hardware that the name of a backend requests.
_HARDWARE_BY_BACKEND: Mapping[str, frozenset[Accelerator]] = MappingProxyType(
    {
        **dict.fromkeys(("gpu", "vulkan", "opencl", "opengl", "webgpu"), frozenset({Accelerator.GPU})),
        "npu": frozenset({Accelerator.NPU}),
        "hexagon": frozenset({Accelerator.DSP, Accelerator.NPU}),
    }
)
#: A backend is what ran when at least this part of the counted nodes did not come back to the CPU.
MIN_SHARE = 0.5


def resolve_actual_backend(placement: Placement | None, requested: str) -> ActualBackend:
    """Return what a placement shows about the requested backend.

    All on the CPU, or more than half of the counted nodes, is a fall back, and so is other hardware than a
    backend's name says; no share, or shares of unknown hardware, leave the accelerator unknown.
    """
    if placement is None:
        return ActualBackend(
            backend=requested,
            accelerator=Accelerator.UNKNOWN,
            proof="nothing in the evidence shows where it ran",
        )
    proof = placement_proof(placement)
    if requested in CPU_BACKENDS:
        return _on_cpu(placement, requested, proof)
    if _is_mostly(placement, Accelerator.CPU):
        return ActualBackend(backend="cpu", accelerator=Accelerator.CPU, proof=proof)
    elsewhere = [
        share for share in placement.shares if _has_nodes(share) and share.accelerator != Accelerator.CPU
    ]
    main = max(elsewhere, key=lambda share: share.nodes or 0, default=None)
    kind = main.accelerator if main is not None else Accelerator.UNKNOWN
    hardware = _HARDWARE_BY_BACKEND.get(requested)
    is_other = hardware is not None and kind is not Accelerator.UNKNOWN and kind not in hardware
    return ActualBackend(backend=kind.value if is_other else requested, accelerator=kind, proof=proof)


def accelerators(placement: Placement) -> frozenset[Accelerator]:
    """Return all hardware that ran a part."""
    return frozenset(share.accelerator for share in placement.shares if _has_nodes(share))


def nodes_by_accelerator(placement: Placement) -> dict[Accelerator, int | None]:
    """Return the nodes per kind of hardware, most first, the CPU last; None where a share is not counted."""
    counts: dict[Accelerator, int | None] = {}
    for share in filter(_has_nodes, placement.shares):
        so_far = counts.get(share.accelerator, 0)
        counts[share.accelerator] = None if so_far is None or share.nodes is None else so_far + share.nodes
    order = sorted(counts.items(), key=lambda item: (-(item[1] or 0), item[0] is Accelerator.CPU, item[0]))
    return dict(order)


def placement_text(placement: Placement) -> str:
    """Format the placement for tables: `dsp 136/139, cpu 3`; `unknown` without a share."""
    counts = nodes_by_accelerator(placement)
    total = placement.total_nodes
    words = [
        kind.value if nodes is None else f"{kind} {nodes}/{total}" if total and not at else f"{kind} {nodes}"
        for at, (kind, nodes) in enumerate(counts.items())
    ]
    return ", ".join(words) or Accelerator.UNKNOWN


def placement_proof(placement: Placement) -> str:
    """Return the lines that show it, after their sum; the warning alone where nothing was delegated."""
    lines = list(dict.fromkeys(share.line for share in placement.shares if share.line))
    lines_shown = [*lines[:3], *list(placement.warnings)[: 1 if lines else 2]]
    return (
        f"{placement_text(placement)}: {'; '.join(dict.fromkeys(lines_shown))}"
        if lines_shown
        else placement_text(placement)
    )


def _on_cpu(placement: Placement, requested: str, proof: str) -> ActualBackend:
    elsewhere = accelerators(placement) - {Accelerator.CPU}
    took = [share.by.lower() for share in placement.shares if _has_nodes(share)]
    if requested == _XNNPACK and not elsewhere and took and not any(_XNNPACK in by for by in took):
        return ActualBackend(backend="cpu", accelerator=Accelerator.CPU, proof=proof)
    if not elsewhere and took:
        return ActualBackend(backend=requested, accelerator=Accelerator.CPU, proof=proof)
    main = max(elsewhere - {Accelerator.UNKNOWN}, default=None)
    if main is None:
        return ActualBackend(backend=requested, accelerator=Accelerator.UNKNOWN, proof=proof)
    return ActualBackend(backend=main.value, accelerator=main, proof=proof)


def _is_mostly(placement: Placement, kind: Accelerator) -> bool:
    took = [share for share in placement.shares if _has_nodes(share)]
    if not took:
        return False
    if all(share.accelerator == kind for share in took):
        return True
    # Nodes that are not counted of this kind can only be more of it.
    if any(share.nodes is None for share in took if share.accelerator != kind):
        return False
    of_kind = sum(share.nodes or 0 for share in took if share.accelerator == kind)
    return of_kind > (1 - MIN_SHARE) * sum(share.nodes or 0 for share in took)


def _has_nodes(share: Share) -> bool:
    """Tell whether a share has nodes; one without ran nothing, whatever was created for it."""
    return share.nodes is None or share.nodes > 0
