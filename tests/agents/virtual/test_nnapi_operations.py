"""NNAPI's reference library: each operation computes what torch does, in float32 and in 8 bits."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest

from agents.virtual.pool import build_nnapi_library
from farm.core.errors import HostError
from tests.support.harness.nnapi_reference import (
    Array,
    Nnapi,
    NnapiError,
    Operand,
    Quantized,
    shared_nnapi_library,
)

if TYPE_CHECKING:
    import torch
    from torch.nn import functional

(ADD, AVERAGE_POOL, CONCATENATION, CONV, DEPTHWISE_CONV, DEQUANTIZE) = (0, 1, 2, 3, 4, 6)
(FULLY_CONNECTED, LOGISTIC, MAX_POOL, MUL, RELU, RELU1, RELU6) = (9, 14, 17, 18, 19, 20, 21)
(RESHAPE, SOFTMAX, MEAN, SUB, TRANSPOSE, QUANTIZE) = (22, 25, 31, 36, 37, 72)
EXP = 49
FLOAT_TOLERANCE = 1e-4
#: Of fused activations, by code.
ACTIVATIONS: "dict[int, Callable[[torch.Tensor], torch.Tensor]]" = {
    0: lambda values: values,
    1: lambda values: functional.relu(values),
    2: lambda values: functional.hardtanh(values, -1, 1),
    3: lambda values: functional.relu6(values),
}
Floats = npt.NDArray[np.float32]


@pytest.fixture(scope="module", autouse=True)
def torch_is_loaded() -> None:
    """Load torch: a worker that runs none of these tests spends no second and no 200 MB on it."""
    global torch, functional
    import torch
    from torch.nn import functional


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    return shared_nnapi_library(tmp_path_factory, worker_id)


@pytest.fixture(scope="module")
def nnapi(library: Path) -> Nnapi:
    return Nnapi(library)


def floats(*shape: int, scale: float = 2.0) -> Floats:
    """Values of either sign, the same for a shape."""
    source = np.random.default_rng(sum(shape) + len(shape))
    return (scale * source.standard_normal(shape)).astype(np.float32)


def quantized(*shape: int, scale: float = 0.03, zero_point: int = 117) -> Quantized:
    values = np.random.default_rng(sum(shape)).integers(0, 256, shape, dtype=np.uint8)
    return Quantized(values=values, scale=scale, zero_point=zero_point)


def real(operand: Operand) -> "torch.Tensor":
    """The real values of an operand."""
    if isinstance(operand, Quantized):
        return operand.scale * torch.from_numpy(operand.values.astype(np.float32) - operand.zero_point)
    return torch.from_numpy(np.asarray(operand))


def nhwc(values: "torch.Tensor") -> "torch.Tensor":
    return values.permute(0, 2, 3, 1)


def nchw(values: "torch.Tensor") -> "torch.Tensor":
    return values.permute(0, 3, 1, 2)


def check(
    nnapi: Nnapi,
    operation: int,
    inputs: Sequence[Operand],
    expected: "torch.Tensor",
    *,
    to: tuple[float, int] | None = None,
) -> None:
    """Compare with what torch computed, after rounding to the output's quantization where it has one."""
    if to is None:
        out: Array | Quantized = np.empty(tuple(expected.shape), np.float32)
        actual = nnapi.run(operation, inputs, out)
        assert np.abs(actual - expected.numpy()).max() < FLOAT_TOLERANCE
        return
    scale, zero_point = to
    steps = np.clip(np.round(expected.numpy() / scale) + zero_point, 0, 255)
    # A test whose outputs are all the same would pass whatever is computed.
    assert len(np.unique(steps)) > 2
    empty = np.empty(tuple(expected.shape), np.uint8)
    stored = nnapi.run(operation, inputs, Quantized(values=empty, scale=scale, zero_point=zero_point))
    assert np.abs(stored.astype(np.int32) - steps).max() <= 1


@pytest.mark.long
def test_the_only_device_is_the_reference(nnapi: Nnapi) -> None:
    assert nnapi.device_names() == ["nnapi-reference"]


@pytest.mark.parametrize("fuse", ACTIVATIONS)
@pytest.mark.parametrize(("stride", "padding"), [(1, 0), (2, 1), (1, 2)])
@pytest.mark.parametrize("channels_first", [False, True])
def test_conv_2d(nnapi: Nnapi, stride: int, padding: int, channels_first: bool, fuse: int) -> None:
    image, filters, bias = floats(2, 7, 9, 5), floats(6, 3, 3, 5), floats(6)
    summed = functional.conv2d(
        nchw(real(image)), nchw(real(filters)), real(bias), stride=stride, padding=padding
    )
    given: Floats = nchw(real(image)).contiguous().numpy() if channels_first else image
    inputs: list[Operand] = [given, filters, bias, *[padding] * 4, stride, stride, fuse, channels_first]
    expected = ACTIVATIONS[fuse](summed if channels_first else nhwc(summed))
    check(nnapi, CONV, inputs, expected)


@pytest.mark.parametrize("fuse", ACTIVATIONS)
@pytest.mark.parametrize("channels_first", [False, True])
def test_quantized_conv_2d(nnapi: Nnapi, channels_first: bool, fuse: int) -> None:
    # Sums on both sides of every activation's bounds, and within the output's range.
    image = quantized(1, 6, 6, 8, scale=0.004)
    filters = quantized(5, 3, 3, 8, scale=0.02, zero_point=128)
    bias = np.arange(-400, 600, 200, dtype=np.int32)
    of_bias = 0.004 * 0.02 * torch.from_numpy(bias)
    summed = functional.conv2d(nchw(real(image)), nchw(real(filters)), of_bias, stride=2, padding=1)
    if channels_first:
        swapped = np.ascontiguousarray(image.values.transpose(0, 3, 1, 2))
        image = Quantized(values=swapped, scale=image.scale, zero_point=image.zero_point)
    inputs: list[Operand] = [image, filters, bias, 1, 1, 1, 1, 2, 2, fuse, channels_first]
    expected = ACTIVATIONS[fuse](summed if channels_first else nhwc(summed))
    check(nnapi, CONV, inputs, expected, to=(0.05, 100))


@pytest.mark.parametrize("each", [1, 2])
def test_depthwise_conv_2d(nnapi: Nnapi, each: int) -> None:
    channels_out = 6 * each
    image, filters, bias = floats(1, 8, 7, 6), floats(1, 3, 3, channels_out), floats(channels_out)
    weight = real(filters).permute(3, 0, 1, 2)
    summed = functional.conv2d(nchw(real(image)), weight, real(bias), stride=2, padding=1, groups=6)
    inputs: list[Operand] = [image, filters, bias, 1, 1, 1, 1, 2, 2, each, 3, False]
    check(nnapi, DEPTHWISE_CONV, inputs, functional.relu6(nhwc(summed)))


def test_quantized_depthwise_conv_2d(nnapi: Nnapi) -> None:
    image, filters = quantized(1, 8, 8, 6), quantized(1, 3, 3, 6, scale=0.02, zero_point=130)
    bias = np.arange(6, dtype=np.int32) * 100
    weight, of_bias = real(filters).permute(3, 0, 1, 2), 0.03 * 0.02 * torch.from_numpy(bias)
    summed = functional.conv2d(nchw(real(image)), weight, of_bias, padding=1, groups=6)
    inputs: list[Operand] = [image, filters, bias, 1, 1, 1, 1, 1, 1, 1, 1, False]
    check(nnapi, DEPTHWISE_CONV, inputs, functional.relu(nhwc(summed)), to=(0.05, 10))


@pytest.mark.parametrize("fuse", ACTIVATIONS)
def test_fully_connected(nnapi: Nnapi, fuse: int) -> None:
    rows, weights, bias = floats(3, 37), floats(11, 37, scale=0.3), floats(11)
    expected = ACTIVATIONS[fuse](functional.linear(real(rows), real(weights), real(bias)))
    check(nnapi, FULLY_CONNECTED, [rows, weights, bias, fuse], expected)


def test_quantized_fully_connected(nnapi: Nnapi) -> None:
    rows, weights = quantized(3, 37), quantized(11, 37, scale=0.02, zero_point=128)
    bias = np.arange(11, dtype=np.int32) * 50
    expected = functional.linear(real(rows), real(weights), 0.03 * 0.02 * torch.from_numpy(bias))
    check(nnapi, FULLY_CONNECTED, [rows, weights, bias, 0], expected, to=(0.2, 127))


@pytest.mark.parametrize(
    ("operation", "computed"),
    [(ADD, lambda a, b: a + b), (SUB, lambda a, b: a - b), (MUL, lambda a, b: a * b)],
    ids=["add", "sub", "mul"],
)
@pytest.mark.parametrize("other", [(2, 3, 4, 5), (1, 3, 1, 5), (5,)])
def test_binary_operations_broadcast(
    nnapi: Nnapi,
    operation: int,
    computed: "Callable[[torch.Tensor, torch.Tensor], torch.Tensor]",
    other: tuple[int, ...],
) -> None:
    a, b = floats(2, 3, 4, 5), floats(*other)
    for fuse, activation in ACTIVATIONS.items():
        check(nnapi, operation, [a, b, fuse], activation(computed(real(a), real(b))))
    a8, b8 = quantized(2, 3, 4, 5), quantized(*other, scale=0.05, zero_point=90)
    check(nnapi, operation, [a8, b8, 0], computed(real(a8), real(b8)), to=(0.1, 128))


@pytest.mark.parametrize(
    ("operation", "computed"),
    [
        (LOGISTIC, lambda values: values.sigmoid()),
        (RELU, ACTIVATIONS[1]),
        (RELU1, ACTIVATIONS[2]),
        (RELU6, ACTIVATIONS[3]),
    ],
    ids=["logistic", "relu", "relu1", "relu6"],
)
def test_operations_on_single_values(
    nnapi: Nnapi, operation: int, computed: "Callable[[torch.Tensor], torch.Tensor]"
) -> None:
    values, stored = floats(3, 50, scale=5), quantized(3, 50)
    check(nnapi, operation, [values], computed(real(values)))
    to = (1 / 256, 0) if operation == LOGISTIC else (stored.scale, stored.zero_point)
    check(nnapi, operation, [stored], computed(real(stored)), to=to)


def test_quantize_and_dequantize_round_as_torch_does(nnapi: Nnapi) -> None:
    values = floats(4, 60)
    # Half steps are rounded to even ones: a scale that 32 bits hold exactly.
    values[0, :4] = np.array([0.5, 1.5, -0.5, 100], np.float32) / 32
    expected = torch.fake_quantize_per_tensor_affine(real(values), 1 / 32, 128, 0, 255)
    out = Quantized(values=np.empty((4, 60), np.uint8), scale=1 / 32, zero_point=128)
    stored = nnapi.run(QUANTIZE, [values], out)
    assert stored[0, :3].tolist() == [128, 130, 128]
    given = Quantized(values=stored.astype(np.uint8), scale=1 / 32, zero_point=128)
    assert torch.equal(real(given), expected)
    check(nnapi, DEQUANTIZE, [given], expected)


@pytest.mark.parametrize("channels_first", [False, True])
@pytest.mark.parametrize("padding", [0, 1])
def test_pools_do_not_count_padding(nnapi: Nnapi, padding: int, channels_first: bool) -> None:
    image, stored = floats(2, 6, 7, 3), quantized(2, 6, 7, 3)
    for given, to in ((image, None), (stored, (stored.scale, stored.zero_point))):
        planes = nchw(real(given))
        averaged = functional.avg_pool2d(planes, 3, 2, padding, count_include_pad=False)
        largest = functional.max_pool2d(planes, 3, 2, padding)
        for operation, expected in ((AVERAGE_POOL, averaged), (MAX_POOL, largest)):
            if channels_first and isinstance(given, Quantized):
                continue
            first: Operand = planes.contiguous().numpy() if channels_first else given
            inputs: list[Operand] = [first, *[padding] * 4, 2, 2, 3, 3, 0, channels_first]
            check(nnapi, operation, inputs, expected if channels_first else nhwc(expected), to=to)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("axes", [(1, 2), (-1,), (0, 3)])
def test_mean(nnapi: Nnapi, axes: tuple[int, ...], keep: bool) -> None:
    values, stored = floats(2, 5, 6, 4), quantized(2, 5, 6, 4)
    rest: list[Operand] = [np.array(axes, np.int32), int(keep)]
    check(nnapi, MEAN, [values, *rest], real(values).mean(axes, keepdim=keep))
    check(nnapi, MEAN, [stored, *rest], real(stored).mean(axes, keepdim=keep), to=(0.01, 128))


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax(nnapi: Nnapi, axis: int) -> None:
    values, stored = floats(4, 9), quantized(4, 9)
    check(nnapi, SOFTMAX, [values, 1.0, axis], functional.softmax(real(values), axis))
    check(nnapi, SOFTMAX, [stored, 1.0, axis], functional.softmax(real(stored), axis), to=(1 / 256, 0))


@pytest.mark.parametrize("axis", [0, 1, 3])
def test_concatenation_requantizes(nnapi: Nnapi, axis: int) -> None:
    a, b = floats(2, 3, 4, 5), floats(2, 3, 4, 5) + 1
    check(nnapi, CONCATENATION, [a, b, axis], torch.cat([real(a), real(b)], axis))
    a8, b8 = quantized(2, 3, 4, 5), quantized(2, 3, 4, 5, scale=0.05, zero_point=90)
    expected = torch.cat([real(a8), real(b8)], axis)
    check(nnapi, CONCATENATION, [a8, b8, axis], expected, to=(0.06, 100))


@pytest.mark.parametrize("shape", [(6, 20), (-1,), (2, -1, 3)])
def test_reshape(nnapi: Nnapi, shape: tuple[int, ...]) -> None:
    values, stored = floats(2, 3, 4, 5), quantized(2, 3, 4, 5)
    wanted = np.array(shape, np.int32)
    check(nnapi, RESHAPE, [values, wanted], real(values).reshape(shape))
    to = (stored.scale, stored.zero_point)
    check(nnapi, RESHAPE, [stored, wanted], real(stored).reshape(shape), to=to)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (3, 2, 1, 0), (0, 1, 2, 3)])
def test_transpose(nnapi: Nnapi, order: tuple[int, ...]) -> None:
    values, stored = floats(2, 3, 4, 5), quantized(2, 3, 4, 5)
    wanted = np.array(order, np.int32)
    check(nnapi, TRANSPOSE, [values, wanted], real(values).permute(order))
    to = (stored.scale, stored.zero_point)
    check(nnapi, TRANSPOSE, [stored, wanted], real(stored).permute(order), to=to)


@pytest.mark.parametrize(
    ("operation", "inputs", "shape"),
    [
        (EXP, [floats(4)], (4,)),
        (RELU, [floats(4)], (5,)),
        (ADD, [floats(4), floats(3), 0], (4,)),
        (ADD, [floats(4), floats(4), 9], (4,)),
        (RESHAPE, [floats(4), np.array([3], np.int32)], (3,)),
        (SOFTMAX, [floats(4), 1.0, 4], (4,)),
        (CONV, [floats(1, 4, 4, 2), floats(3, 3, 3, 4), floats(3), 0, 0, 0, 0, 1, 1, 0], (1, 2, 2, 3)),
        (CONV, [floats(1, 4, 4, 2), floats(3, 5, 5, 2), floats(3), 0, 0, 0, 0, 1, 1, 0], (1, 2, 2, 3)),
        (CONV, [floats(1, 4, 4, 2), floats(3, 3, 3, 2), floats(3), 1, 1, 1, 0], (1, 2, 2, 3)),
        (MAX_POOL, [floats(1, 4, 4, 2), 0, 0, 0, 0, 0, 1, 2, 2, 0], (1, 3, 3, 2)),
    ],
    ids=[
        *("unknown", "shape", "broadcast", "activation", "size", "axis"),
        *("channels", "kernel", "implicit-padding", "stride"),
    ],
)
def test_what_the_library_does_not_have_is_refused(
    nnapi: Nnapi, operation: int, inputs: list[Operand], shape: tuple[int, ...]
) -> None:
    with pytest.raises(NnapiError, match=r": 4$"):
        nnapi.run(operation, inputs, np.empty(shape, np.float32))


def test_without_a_compiler_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(HostError, match=r"no C\+\+ compiler") as refused:
        build_nnapi_library(tmp_path / "nnapi")
    assert "g++" in str(refused.value.hint)


def test_the_library_is_built_once_for_its_sources(library: Path) -> None:
    before = library.stat()
    assert build_nnapi_library(library.parent) == library
    after = library.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
