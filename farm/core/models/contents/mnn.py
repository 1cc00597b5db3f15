"""Operators and weights of MNN's models; fields and operators as in its `MNN.fbs` and `CaffeOp.fbs`, 3.6."""

from collections.abc import Iterator, Mapping, Sequence

from farm.core.models.contents.counts import FileContents, count_operators, count_weights, few
from farm.core.models.flatbuffer import I32, Table, root_table, table_at
from farm.core.models.variant import MOST_DIMENSIONS

#: OpType by the first number of each run of numbers.
_NAMES_BY_FIRST = {
    0: """
    AbsVal QuantizedAdd ArgMax AsString InstanceNorm BatchToSpaceND Copy BinaryOp Bnll Cast Concat Const
    Convolution ConvolutionDepthwise Crop CropAndResize ImageProcess Deconvolution DeconvolutionDepthwise
    Dequantize DetectionOutput Dropout Eltwise ELU Unique Exp ExpandDims Fill Flatten Im2Col Gather
    GatherV2 Im2Seq InnerProduct Input Interp Log LRN LSTM MatMul MoE NonMaxSuppression
    NonMaxSuppressionV2 Normalize Pack Padding Permute Pooling Power PReLU PriorBox Proposal
    QuantizedAvgPool QuantizedBiasAdd QuantizedConcat QuantizedDepthwiseConv2D QuantizedLogistic
    RasterAndInterpolate QuantizedMaxPool Texture RasterDiff QuantizedReshape QuantizedSoftmax
    QuantizeMaxMin QuantizeV2 Range Rank ReduceJoin Reduction ReLU ReLU6 RequantizationRange Requantize
    Reshape Resize RNN ROIPooling Scale Selu Seq2Out Shape Sigmoid Size Slice SliceTf Softmax
    SpaceToBatchND SpatialProduct Col2Im Segment Squeeze StridedSlice CastLike StringSplit StringToNumber
    TanH TfQuantizedConv2D Threshold Tile TopKV2 Transpose UnaryOp Unpack Where Moments RNNSequenceGRU
    BatchMatMul Unsqueeze CosineSimilarity DepthToSpace SpaceToDepth ReverseSequence Pooling3D
    Convolution3D MatrixBandPart GatherND DetectionPostProcess UnravelIndex ScatterNd OneHot BroadcastTo
    Dilation2D Interp3D
    """,
    128: """
    Raster ConvertTensor ArgMin LinSpace RandomUniform TensorArray TensorArraySize TensorArrayRead
    TensorArrayWrite TensorArrayGather TensorArrayScatter TensorArraySplit TensorArrayConcat LSTMBlockCell
    Reverse ROIAlign RandomNormal TensorArrayInsert TensorArrayErase EyeLike CumSum Det CumProd
    ScatterElements GatherElements Svd Histogram DynamicQuant Stft
    """,
    256: """
    Plugin Select ZerosLike Broastcast SetDiff1D ReluGrad Identity PoolGrad SoftmaxGrad
    Conv2DBackPropFilter TrainableParam BatchNorm ConvTranspose3D ZeroGrad
    """,
    299: "Attention FmhaV2 Fmhca SeqLen2Spatial SplitGeLU GroupNorm LinearAttention RoPE",
    512: "Extra ConvInt8 Int8ToFloat DepthwiseConvInt8",
    517: "FloatToInt8 EltwiseInt8",
    600: "While If",
    603: "LayerNorm GridSample",
}
MNN_OPERATORS: Mapping[int, str] = {
    first + index: name
    for first, names in _NAMES_BY_FIRST.items()
    for index, name in enumerate(names.split())
}
_CONVOLUTIONS = (
    "Convolution",
    "ConvolutionDepthwise",
    "Deconvolution",
    "DeconvolutionDepthwise",
    "ConvInt8",
    "DepthwiseConvInt8",
)
_CONSTANTS = ("Const", "TrainableParam")
#: Operators that keep weights in tables of their own, or are networks of their own.
_UNREAD_NAMES = """
LSTM LSTMBlockCell RNN RNNSequenceGRU InnerProduct Scale BatchNorm InstanceNorm LayerNorm GroupNorm Normalize
PReLU Convolution3D ConvTranspose3D QuantizedDepthwiseConv2D TfQuantizedConv2D MoE Attention FmhaV2 Fmhca
LinearAttention Extra Plugin While If
"""
_UNREAD = frozenset(_UNREAD_NAMES.split())
#: DataType of constants that are weights: float, half. Shapes and indices are whole numbers.
_WEIGHT_TYPES = frozenset({1, 19})


def mnn_contents(content: memoryview) -> FileContents:
    """Count the operators, and the weights of convolutions and constants.

    Weights are unknown where an operator keeps some that are not read.

    Raises:
        ValueError: it cannot be read.
    """
    operators = [table_at(content, place) for place in few(root_table(content).items(3))]
    names = [_operator_name(operator) for operator in operators]
    is_known = not any(name in _UNREAD or name.startswith(_UNKNOWN) for name in names)
    return FileContents(
        parameters=count_weights(_weights(operators, names)) if is_known else None,
        operators=count_operators(names),
        macs_uncounted="the file does not state the sizes of its tensors",
    )


_UNKNOWN = "operator "


def _operator_name(operator: Table) -> str:
    number = operator.number(5, I32)
    return MNN_OPERATORS.get(number, f"{_UNKNOWN}{number}")


def _weights(operators: Sequence[Table], names: Sequence[str]) -> Iterator[Sequence[int]]:
    for operator, name in zip(operators, names, strict=True):
        parameters = operator.table(2)
        if parameters is None:
            continue
        if name in _CONVOLUTIONS and (common := parameters.table(0)) is not None:
            # The numbers themselves may be packed, or in another file.
            group, outputs, inputs = (common.number(field, I32, default) for field, default in _CHANNELS)
            kernel = [common.number(field, I32, 1) for field in _KERNEL]
            yield outputs, inputs // max(group, 1), *kernel
            yield (outputs,)
        elif name in _CONSTANTS and parameters.number(2, I32, 1) in _WEIGHT_TYPES:
            yield parameters.numbers(0, I32, MOST_DIMENSIONS)


#: Of Convolution2DCommon: group, channels out and in, with their defaults; width and height of the kernel.
_CHANNELS = ((9, 1), (10, 0), (11, 0))
_KERNEL = (2, 3)
