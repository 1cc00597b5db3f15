"""The same language model as a LiteRT-LM file (`.litertlm`), once for each of its number formats.

python examples/llm/litertlm_file.py FOLDER [--tiny]

The graphs are written operator by operator, in the schema of TensorFlow Lite: `prefill_N` takes N tokens of
a prompt, `decode` one token. Their tensors have the names that LiteRT-LM looks for. Weights are those of the
GGUF files. Norms, embeddings, rotations and the cache of keys and values stay float32 in every number format.
"""

import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import flatbuffers
import numpy
from ai_edge_litert import schema_py_generated as schema
from litert_lm_builder import litertlm_builder
from network import EPSILON, SIZES, Sizes, drawn, vocabulary, write_files

#: Tokens of a prompt at once, and all tokens that the cache has room for.
PREFILL, CONTEXT = 128, 512
PRECISIONS = ("f32", "int8")
_OPERATOR = schema.BuiltinOperator
_OPTIONS = schema.BuiltinOptions
_TYPES = {
    "float32": schema.TensorType.FLOAT32,
    "int32": schema.TensorType.INT32,
    "int8": schema.TensorType.INT8,
}


@dataclass
class _Model:
    """What the graphs of a file share: buffers, and kinds of operators."""

    #: By name; both graphs use the same bytes.
    buffers: dict[str, int] = field(default_factory=dict)
    contents: list[Any] = field(default_factory=lambda: [None])
    operators: list[int] = field(default_factory=list)

    def buffer(self, name: str, values: Any) -> int:
        """Return the number of a buffer with these values; it is written once."""
        if name not in self.buffers:
            self.buffers[name] = len(self.contents)
            self.contents.append(numpy.frombuffer(numpy.ascontiguousarray(values).tobytes(), numpy.uint8))
        return self.buffers[name]

    def operator(self, kind: int) -> int:
        """Return the number of a kind of operator."""
        if kind not in self.operators:
            self.operators.append(kind)
        return self.operators.index(kind)


class _Graph:
    """One graph under construction. Its methods add an operator, and return the number of its output."""

    def __init__(self, model: _Model, precision: str) -> None:
        self.model, self.precision = model, precision
        self.tensors: list[Any] = []
        self.nodes: list[Any] = []
        self.inputs: dict[str, int] = {}

    def tensor(self, shape: Sequence[int], kind: str = "float32", *, name: str = "", buffer: int = 0) -> int:
        made = schema.TensorT()
        made.shape, made.type, made.buffer = list(shape), _TYPES[kind], buffer
        made.name = name or f"t{len(self.tensors)}"
        self.tensors.append(made)
        return len(self.tensors) - 1

    def shape(self, number: int) -> list[int]:
        return list(self.tensors[number].shape)

    def input(self, name: str, shape: Sequence[int], kind: str = "float32") -> int:
        self.inputs[name] = self.tensor(shape, kind, name=name)
        return self.inputs[name]

    def constant(self, name: str, values: Any) -> int:
        return self.tensor(values.shape, str(values.dtype), name=name, buffer=self.model.buffer(name, values))

    def numbers(self, *values: int) -> int:
        array = numpy.array(values, numpy.int32)
        return self.constant("_".join(["numbers", *map(str, values)]), array)

    def node(self, kind: int, inputs: Sequence[int], shape: Sequence[int], options: Any = None) -> int:
        made = schema.OperatorT()
        made.opcodeIndex, made.inputs = self.model.operator(kind), list(inputs)
        made.outputs = [self.tensor(shape)]
        if options is not None:
            made.builtinOptions = options
            made.builtinOptionsType = getattr(_OPTIONS, type(options).__name__.removesuffix("T"))
        self.nodes.append(made)
        return int(made.outputs[0])

    def reshape(self, x: int, *shape: int) -> int:
        return self.node(_OPERATOR.RESHAPE, [x, self.numbers(*shape)], shape)

    def transpose(self, x: int, *order: int) -> int:
        shape = [self.shape(x)[axis] for axis in order]
        return self.node(_OPERATOR.TRANSPOSE, [x, self.numbers(*order)], shape)

    def multiply(self, x: int, y: int) -> int:
        shape = numpy.broadcast_shapes(self.shape(x), self.shape(y))
        return self.node(_OPERATOR.MUL, [x, y], shape, schema.MulOptionsT())

    def add(self, x: int, y: int) -> int:
        shape = numpy.broadcast_shapes(self.shape(x), self.shape(y))
        return self.node(_OPERATOR.ADD, [x, y], shape, schema.AddOptionsT())

    def subtract(self, x: int, y: int) -> int:
        return self.node(_OPERATOR.SUB, [x, y], self.shape(x), schema.SubOptionsT())

    def part(self, x: int, begin: int, count: int) -> int:
        """Return so many elements of the last axis."""
        shape = [*self.shape(x)[:-1], count]
        starts = self.numbers(*[0] * (len(shape) - 1), begin)
        return self.node(_OPERATOR.SLICE, [x, starts, self.numbers(*shape)], shape)

    def gather(self, table: int, rows: int) -> int:
        shape = [*self.shape(rows), *self.shape(table)[1:]]
        return self.node(_OPERATOR.GATHER, [table, rows], shape, schema.GatherOptionsT())

    def matmul(self, x: int, y: int, *, transposed: bool) -> int:
        options = schema.BatchMatMulOptionsT()
        options.adjY = transposed
        columns = self.shape(y)[-2 if transposed else -1]
        return self.node(_OPERATOR.BATCH_MATMUL, [x, y], [*self.shape(x)[:-1], columns], options)

    def linear(self, x: int, name: str, rows: int) -> int:
        """Return a matrix of the model times x; its weights are in the number format of the file."""
        weights = drawn(name, (rows, self.shape(x)[-1]))
        options = schema.FullyConnectedOptionsT()
        options.keepNumDims = True
        if self.precision == "int8":
            scales = numpy.abs(weights).max(axis=1) / 127
            rounded = numpy.round(weights / scales[:, None]).astype(numpy.int8)
            matrix = self.constant(name, rounded)
            quantization = schema.QuantizationParametersT()
            quantization.scale = scales.astype(numpy.float32)
            quantization.zeroPoint = numpy.zeros(rows, numpy.int64)
            self.tensors[matrix].quantization = quantization
        else:
            matrix = self.constant(name, weights)
        return self.node(_OPERATOR.FULLY_CONNECTED, [x, matrix, -1], [*self.shape(x)[:-1], rows], options)

    def norm(self, x: int, name: str) -> int:
        options = schema.ReducerOptionsT()
        options.keepDims = True
        squares = self.multiply(x, x)
        mean = self.node(
            _OPERATOR.MEAN, [squares, self.numbers(len(self.shape(x)) - 1)], [*self.shape(x)[:-1], 1], options
        )
        epsilon = self.constant("epsilon", numpy.array([EPSILON], numpy.float32))
        scale = self.node(_OPERATOR.RSQRT, [self.add(mean, epsilon)], self.shape(mean))
        ones = self.constant(name, numpy.ones(self.shape(x)[-1:], numpy.float32))
        return self.multiply(self.multiply(x, scale), ones)

    def update(self, cache: int, new: int, starts: int) -> int:
        return self.node(_OPERATOR.DYNAMIC_UPDATE_SLICE, [cache, new, starts], self.shape(cache))


def _llama(graph: _Graph, sizes: Sizes, tokens: int, *, with_logits: bool) -> dict[str, int]:
    """Add the network for so many tokens at once; return its outputs by their names."""
    head, groups = sizes.width // sizes.heads, sizes.heads // sizes.heads_of_keys
    ids = graph.input("tokens", [1, tokens], "int32")
    positions = graph.input("input_pos", [tokens], "int32")
    mask = graph.input("mask", [1, 1, tokens, CONTEXT])
    angles = numpy.outer(numpy.arange(CONTEXT), 10_000.0 ** (-numpy.arange(0, head, 2) / head))
    turns = [
        graph.reshape(
            graph.gather(graph.constant(name, table.astype(numpy.float32)), positions),
            1,
            1,
            tokens,
            head // 2,
        )
        for name, table in (("cosines", numpy.cos(angles)), ("sines", numpy.sin(angles)))
    ]
    first = graph.node(_OPERATOR.SLICE, [positions, graph.numbers(0), graph.numbers(1)], [1])
    graph.tensors[first].type = _TYPES["int32"]
    starts = graph.node(
        _OPERATOR.CONCATENATION,
        [graph.numbers(0, 0), first, graph.numbers(0)],
        [4],
        schema.ConcatenationOptionsT(),
    )
    graph.tensors[starts].type = _TYPES["int32"]
    x = graph.gather(graph.constant("token_embd", drawn("token_embd", (sizes.vocabulary, sizes.width))), ids)
    outputs: dict[str, int] = {}
    for layer in range(sizes.layers):
        block = f"blk.{layer}"
        normed = graph.norm(x, f"{block}.attn_norm")
        query, key, value = (
            graph.transpose(
                graph.reshape(graph.linear(normed, f"{block}.{name}", heads * head), 1, tokens, heads, head),
                0,
                2,
                1,
                3,
            )
            for name, heads in (
                ("attn_q", sizes.heads),
                ("attn_k", sizes.heads_of_keys),
                ("attn_v", sizes.heads_of_keys),
            )
        )
        query, key = _turned(graph, query, turns), _turned(graph, key, turns)
        caches = []
        for kind, new in (("k", key), ("v", value)):
            name = f"kv_cache_{kind}_{layer}"
            cache = graph.input(name, [1, sizes.heads_of_keys, CONTEXT, head])
            outputs[name] = graph.update(cache, new, starts)
            caches.append(outputs[name])
        scale = graph.constant("scale", numpy.array([head**-0.5], numpy.float32))
        grouped = graph.reshape(graph.multiply(query, scale), 1, sizes.heads_of_keys, groups * tokens, head)
        scores = graph.reshape(
            graph.matmul(grouped, caches[0], transposed=True), 1, sizes.heads, tokens, CONTEXT
        )
        options = schema.SoftmaxOptionsT()
        options.beta = 1.0
        shares = graph.node(_OPERATOR.SOFTMAX, [graph.add(scores, mask)], graph.shape(scores), options)
        shares = graph.reshape(shares, 1, sizes.heads_of_keys, groups * tokens, CONTEXT)
        mixed = graph.reshape(graph.matmul(shares, caches[1], transposed=False), 1, sizes.heads, tokens, head)
        mixed = graph.reshape(graph.transpose(mixed, 0, 2, 1, 3), 1, tokens, sizes.width)
        x = graph.add(x, graph.linear(mixed, f"{block}.attn_output", sizes.width))
        normed = graph.norm(x, f"{block}.ffn_norm")
        gate = graph.linear(normed, f"{block}.ffn_gate", sizes.inner)
        gate = graph.multiply(gate, graph.node(_OPERATOR.LOGISTIC, [gate], graph.shape(gate)))
        inner = graph.multiply(gate, graph.linear(normed, f"{block}.ffn_up", sizes.inner))
        x = graph.add(x, graph.linear(inner, f"{block}.ffn_down", sizes.width))
    if with_logits:
        outputs["logits"] = graph.linear(graph.norm(x, "output_norm"), "output", sizes.vocabulary)
    return outputs


def _turned(graph: _Graph, x: int, turns: Sequence[int]) -> int:
    """Return the vectors of heads rotated by their positions."""
    cosines, sines = turns
    half = graph.shape(x)[-1] // 2
    low, high = graph.part(x, 0, half), graph.part(x, half, half)
    parts = [
        graph.subtract(graph.multiply(low, cosines), graph.multiply(high, sines)),
        graph.add(graph.multiply(high, cosines), graph.multiply(low, sines)),
    ]
    options = schema.ConcatenationOptionsT()
    options.axis = 3
    return graph.node(_OPERATOR.CONCATENATION, parts, graph.shape(x), options)


def tflite(precision: str, sizes: Sizes = SIZES) -> bytes:
    """Return the two graphs as a file of TensorFlow Lite."""
    model = _Model()
    packed = schema.ModelT()
    packed.version, packed.subgraphs, packed.signatureDefs = 3, [], []
    for name, tokens in ((f"prefill_{PREFILL}", PREFILL), ("decode", 1)):
        graph = _Graph(model, precision)
        outputs = _llama(graph, sizes, tokens, with_logits=name == "decode")
        subgraph = schema.SubGraphT()
        subgraph.name, subgraph.tensors, subgraph.operators = name, graph.tensors, graph.nodes
        subgraph.inputs, subgraph.outputs = list(graph.inputs.values()), list(outputs.values())
        signature = schema.SignatureDefT()
        signature.signatureKey, signature.subgraphIndex = name, len(packed.subgraphs)
        signature.inputs, signature.outputs = _named(graph.inputs), _named(outputs)
        packed.subgraphs.append(subgraph)
        packed.signatureDefs.append(signature)
    packed.buffers = [_buffer(content) for content in model.contents]
    packed.operatorCodes = [_code(kind) for kind in model.operators]
    builder = flatbuffers.Builder(1024)
    builder.Finish(packed.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def _named(numbers: dict[str, int]) -> list[Any]:
    maps = []
    for name, number in numbers.items():
        made = schema.TensorMapT()
        made.name, made.tensorIndex = name, number
        maps.append(made)
    return maps


def _buffer(content: Any) -> Any:
    made = schema.BufferT()
    made.data = content
    return made


def _code(kind: int) -> Any:
    made = schema.OperatorCodeT()
    made.builtinCode, made.deprecatedBuiltinCode, made.version = kind, min(kind, 127), _VERSIONS.get(kind, 1)
    return made


#: The first version of an operator that has what is used here: FULLY_CONNECTED with float32 inputs and 8-bit
#: weights by channel, and dimensions that are kept.
_VERSIONS = {_OPERATOR.FULLY_CONNECTED: 9}


def tokenizer(sizes: Sizes = SIZES) -> str:
    """Return a tokenizer of Hugging Face's `tokenizers` as JSON: a token is a word between spaces."""
    words = {word: number for number, word in enumerate(vocabulary(sizes))}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [],
            "normalizer": None,
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "post_processor": None,
            "decoder": None,
            "model": {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
        }
    )


#: No template: the prompt is processed as it is. Token 2 ends a text; a benchmark does not stop at it.
_METADATA = """
start_token {{ token_ids {{ ids: [1] }} }}
stop_tokens {{ token_ids {{ ids: [2] }} }}
max_num_tokens: {context}
llm_model_type {{ generic_model {{}} }}
sampler_params {{ type: TOP_P k: 1 p: 1.0 temperature: 1.0 seed: 0 }}
"""


def write(path: Path, precision: str, sizes: Sizes = SIZES) -> None:
    """Write the model with its matrices in a number format."""
    with tempfile.TemporaryDirectory() as name:
        parts = Path(name)
        (parts / "model.tflite").write_bytes(tflite(precision, sizes))
        (parts / "tokenizer.json").write_text(tokenizer(sizes))
        (parts / "metadata.pbtext").write_text(_METADATA.format(context=CONTEXT))
        builder = litertlm_builder.LitertLmFileBuilder()
        builder.add_system_metadata(
            litertlm_builder.Metadata(
                key="Authors", value="random weights", dtype=litertlm_builder.DType.STRING
            )
        )
        builder.add_llm_metadata(str(parts / "metadata.pbtext"))
        builder.add_hf_tokenizer(str(parts / "tokenizer.json"))
        builder.add_tflite_model(str(parts / "model.tflite"), litertlm_builder.TfLiteModelType.PREFILL_DECODE)
        with path.open("wb") as file:
            builder.build(file)


if __name__ == "__main__":
    write_files(sys.argv[1:], "random-{}.litertlm", PRECISIONS, write, {})
