"""The inputs that a model file states, for the formats that state them; nothing in it is run."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from farm.core.models.inputs.flatbuffers import executorch_inputs, ort_inputs, tflite_inputs
from farm.core.models.inputs.ncnn import ncnn_inputs
from farm.core.models.inputs.onnx import onnx_inputs
from farm.core.models.variant import Format, TensorSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInputs:
    """The inputs of a file, in its order."""

    inputs: tuple[TensorSpec, ...]
    #: Why they are not known; None where they were read.
    unread: str | None


_READERS: Mapping[Format, Callable[[memoryview], tuple[TensorSpec, ...]]] = {
    Format.TFLITE: tflite_inputs,
    Format.ONNX: onnx_inputs,
    Format.ORT: ort_inputs,
    Format.EXECUTORCH: executorch_inputs,
    Format.NCNN: ncnn_inputs,
}


def file_inputs(content: memoryview, format: Format) -> FileInputs:
    """Read the inputs of a file of a format; one that cannot be read has none, with the reason."""
    read = _READERS.get(format)
    if read is None:
        return FileInputs(inputs=(), unread=f"{format} files do not state their inputs")
    try:
        return FileInputs(inputs=read(content), unread=None)
    except ValueError as error:
        return FileInputs(inputs=(), unread=f"the file does not show its inputs: {error}")
