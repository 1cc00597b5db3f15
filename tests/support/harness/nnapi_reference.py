"""NNAPI's reference library: built once in a test run, and called as a runtime does, by its C interface."""

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from agents.virtual.pool import build_nnapi_library
from tests.support.session.shared_folder import one_at_a_time, shared_folder

Array = npt.NDArray[np.generic]

FLOAT, INTEGER, TENSOR_FLOAT, TENSOR_INTEGER, TENSOR_QUANTIZED, BOOL = 0, 1, 3, 4, 5, 6
_TENSOR_TYPES = {
    np.dtype("f4"): TENSOR_FLOAT,
    np.dtype("i4"): TENSOR_INTEGER,
    np.dtype("u1"): TENSOR_QUANTIZED,
}


class NnapiError(Exception):
    """A function returned another code than that of success."""


def shared_nnapi_library(factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The library; all workers of one test run build it once."""
    folder = shared_folder(factory, worker_id, "nnapi")
    with one_at_a_time(folder):
        return build_nnapi_library(folder)


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantized:
    """Values of 8 bits with their quantization: real value = scale x (stored value - zero point)."""

    values: npt.NDArray[np.uint8]
    scale: float
    zero_point: int


Operand = Array | Quantized | bool | int | float


class _OperandType(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int32),
        ("dimension_count", ctypes.c_uint32),
        ("dimensions", ctypes.POINTER(ctypes.c_uint32)),
        ("scale", ctypes.c_float),
        ("zero_point", ctypes.c_int32),
    )


class Nnapi:
    """The library, loaded."""

    def __init__(self, path: Path) -> None:
        self._library = ctypes.CDLL(str(path))

    def device_names(self) -> list[str]:
        """The names of its devices."""
        count = ctypes.c_uint32()
        self.call("ANeuralNetworks_getDeviceCount", ctypes.byref(count))
        names = []
        for index in range(count.value):
            device, name = ctypes.c_void_p(), ctypes.c_char_p()
            self.call("ANeuralNetworks_getDevice", ctypes.c_uint32(index), ctypes.byref(device))
            self.call("ANeuralNetworksDevice_getName", device, ctypes.byref(name))
            names.append((name.value or b"").decode())
        return names

    def run(self, operation: int, inputs: Sequence[Operand], out: Array | Quantized) -> Array:
        """What a model of one operation computes; `out` has the shape and type of its output.

        The first input is given to the execution; the others are constants of the model.

        Raises:
            NnapiError: the library refuses it.
        """
        model, kept = ctypes.c_void_p(), []
        self.call("ANeuralNetworksModel_create", ctypes.byref(model))
        compilation, execution = ctypes.c_void_p(), ctypes.c_void_p()
        try:
            for index, operand in enumerate([*inputs, out]):
                type_, values = _described(operand)
                kept.append((type_, values))
                self.call("ANeuralNetworksModel_addOperand", model, ctypes.byref(type_))
                if 0 < index < len(inputs):
                    given = (model, ctypes.c_int32(index), *_buffer(values))
                    self.call("ANeuralNetworksModel_setOperandValue", *given)
            of_operation = (*_indexes(range(len(inputs))), *_indexes([len(inputs)]))
            self.call("ANeuralNetworksModel_addOperation", model, ctypes.c_int32(operation), *of_operation)
            ends = (*_indexes([0]), *_indexes([len(inputs)]))
            self.call("ANeuralNetworksModel_identifyInputsAndOutputs", model, *ends)
            self.call("ANeuralNetworksModel_finish", model)
            self.call("ANeuralNetworksCompilation_create", model, ctypes.byref(compilation))
            self.call("ANeuralNetworksCompilation_finish", compilation)
            self.call("ANeuralNetworksExecution_create", compilation, ctypes.byref(execution))
            result = np.empty_like(kept[-1][1])
            first = (execution, ctypes.c_int32(0), None, *_buffer(kept[0][1]))
            self.call("ANeuralNetworksExecution_setInput", *first)
            last = (execution, ctypes.c_int32(0), None, *_buffer(result))
            self.call("ANeuralNetworksExecution_setOutput", *last)
            self.call("ANeuralNetworksExecution_compute", execution)
            return result
        finally:
            for name, handle in (("Execution", execution), ("Compilation", compilation), ("Model", model)):
                getattr(self._library, f"ANeuralNetworks{name}_free")(handle)

    def call(self, name: str, *arguments: object) -> None:
        """Call a function.

        Raises:
            NnapiError: it returns another code than 0.
        """
        if (code := getattr(self._library, name)(*arguments)) != 0:
            raise NnapiError(f"{name}: {code}")


def _described(operand: Operand) -> tuple[_OperandType, Array]:
    """Return type and value; scalars have no dimensions."""
    scale, zero_point = 0.0, 0
    match operand:
        case bool():
            return _OperandType(BOOL, 0, None, 0, 0), np.array([operand], np.uint8)
        case int():
            return _OperandType(INTEGER, 0, None, 0, 0), np.array([operand], np.int32)
        case float():
            return _OperandType(FLOAT, 0, None, 0, 0), np.array([operand], np.float32)
        case Quantized():
            values: Array = np.ascontiguousarray(operand.values)
            scale, zero_point = operand.scale, operand.zero_point
        case _:
            values = np.ascontiguousarray(operand)
    dims = (ctypes.c_uint32 * values.ndim)(*values.shape)
    return _OperandType(_TENSOR_TYPES[values.dtype], values.ndim, dims, scale, zero_point), values


def _buffer(values: Array) -> tuple[ctypes.c_void_p, ctypes.c_size_t]:
    return values.ctypes.data_as(ctypes.c_void_p), ctypes.c_size_t(values.nbytes)


def _indexes(indexes: Sequence[int]) -> tuple[ctypes.c_uint32, object]:
    return ctypes.c_uint32(len(indexes)), (ctypes.c_uint32 * len(indexes))(*indexes)
