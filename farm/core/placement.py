"""Which hardware computed which part of a model, with the lines that show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


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
    """All that evidence shows of where a model ran. Nodes nobody took are the CPU's, and have a share too."""

    shares: tuple[Share, ...]
    #: Of the whole model, in the same count as the shares'; None where the tool does not say.
    total_nodes: int | None = None
    #: What speaks against it, or qualifies it: a fall back, a delegate that was not created, each as a line.
    warnings: Sequence[str] = ()
