"""Operators, weights and multiply-accumulates of a model file, for the formats that show them."""

from collections.abc import Callable, Mapping

from farm.core.errors import VariantInvalid
from farm.core.models.contents.counts import FileContents
from farm.core.models.contents.executorch import executorch_contents
from farm.core.models.contents.mnn import mnn_contents
from farm.core.models.contents.ncnn import ncnn_contents
from farm.core.models.contents.onnx import onnx_contents
from farm.core.models.contents.ort import ort_contents
from farm.core.models.contents.tflite import tflite_contents
from farm.core.models.llm.gguf import gguf_parameters
from farm.core.models.llm.litertlm import litertlm_models
from farm.core.models.variant import Format


def _tflite_contents(content: memoryview) -> FileContents:
    return tflite_contents([content])


def _gguf_contents(content: memoryview) -> FileContents:
    return FileContents(
        parameters=gguf_parameters(content),
        macs_uncounted="the runtime builds the network, which is not in the file",
    )


def _litertlm_contents(content: memoryview) -> FileContents:
    return tflite_contents(litertlm_models(content))


_READERS: Mapping[Format, Callable[[memoryview], FileContents]] = {
    Format.TFLITE: _tflite_contents,
    Format.ONNX: onnx_contents,
    Format.ORT: ort_contents,
    Format.EXECUTORCH: executorch_contents,
    Format.NCNN: ncnn_contents,
    Format.MNN: mnn_contents,
    Format.GGUF: _gguf_contents,
    Format.LITERTLM: _litertlm_contents,
}


def file_contents(content: memoryview, format: Format) -> FileContents:
    """Count a file of a format; what cannot be read is unknown."""
    read = _READERS.get(format)
    if read is None:
        return FileContents(macs_uncounted=f"{format} files do not show their operators")
    try:
        return read(content)
    except (ValueError, VariantInvalid) as error:
        return FileContents(macs_uncounted=f"the file does not show its operators: {error}")
