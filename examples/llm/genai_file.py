"""The same language model for ONNX Runtime GenAI, once for each number format; and the files beside it.

python examples/llm/genai_file.py FOLDER [--tiny] [f32] [int8] [int4]

The network has the inputs, outputs and operators that GenAI's own builder gives a llama. Weights are those
of the GGUF files. Norms, embeddings and the cache of keys and values stay float32 in every number format.
"""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy
import onnx
from network import EPSILON, SIZES, Sizes, drawn, vocabulary, write_files
from onnx import TensorProto, helper, numpy_helper

#: Tokens that the cache has room for; a prompt and the text behind it may have all of them.
CONTEXT = 512
_BITS = {"int8": 8, "int4": 4}
PRECISIONS = ("f32", *_BITS)
#: Weights of a row that share a scale.
_BLOCK = 32
#: Token 1 begins a text, and token 2 ends it.
_BEGIN, _END = 1, 2
#: The operators of ONNX Runtime itself.
_MICROSOFT = "com.microsoft"
#: How SentencePiece writes a space.
_SPACE = "\u2581"


class _Graph:
    def __init__(self, precision: str) -> None:
        self.bits = _BITS.get(precision)
        self.nodes: list[Any] = []
        self.weights: list[Any] = []

    def node(self, kind: str, inputs: list[str], name: str, outputs: int = 1, **attributes: Any) -> str:
        names = [name, *(f"{name}_{number}" for number in range(1, outputs))]
        self.nodes.append(helper.make_node(kind, inputs, names, name=name, **attributes))
        return name

    def constant(self, name: str, values: Any) -> str:
        self.weights.append(numpy_helper.from_array(numpy.ascontiguousarray(values), name))
        return name

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        """Multiply with a matrix in the number format of the file."""
        weights = drawn(name, (rows, columns))
        if self.bits is None:
            return self.node("MatMul", [x, self.constant(f"{name}.weight", weights.T)], name)
        quantized, scales = _quantized(weights, self.bits)
        inputs = [
            x,
            self.constant(f"{name}.weight", quantized),
            self.constant(f"{name}.scales", scales.ravel()),
        ]
        return self.node(
            "MatMulNBits",
            inputs,
            name,
            domain=_MICROSOFT,
            K=columns,
            N=rows,
            bits=self.bits,
            block_size=_BLOCK,
            # Activations are quantized, too: to 8 bits, by their range.
            accuracy_level=4,
        )

    def norm(self, x: str, name: str, width: int) -> str:
        """Divide by the root mean square; the weights of it are ones in every file."""
        ones = self.constant(f"{name}.weight", numpy.ones(width, numpy.float32))
        attributes: dict[str, Any] = {"epsilon": EPSILON, "axis": -1, "stash_type": 1}
        return self.node("SimplifiedLayerNormalization", [x, ones], name, **attributes)


def _quantized(weights: Any, bits: int) -> tuple[Any, Any]:
    """Return unsigned weights in blocks of a row, and the scale of each block; the middle stands for zero."""
    middle = 2 ** (bits - 1)
    blocks = weights.reshape(weights.shape[0], -1, _BLOCK)
    scales = numpy.abs(blocks).max(-1, keepdims=True) / (middle - 1)
    values = numpy.clip(numpy.rint(blocks / scales) + middle, 0, 2 * middle - 1).astype(numpy.uint8)
    if bits == 4:
        values = values[..., 0::2] | values[..., 1::2] << 4
    return values, scales.squeeze(-1).astype(numpy.float32)


def _rotations(head: int) -> tuple[Any, Any]:
    angles = numpy.outer(numpy.arange(CONTEXT), 10_000.0 ** (-numpy.arange(0, head, 2) / head))
    return numpy.cos(angles).astype(numpy.float32), numpy.sin(angles).astype(numpy.float32)


def _lengths(graph: _Graph) -> list[str]:
    """Return how many tokens are there before the last one, and how many there are together."""
    one, last = graph.constant("one", numpy.array([1])), graph.constant("last", numpy.array(1))
    whole = graph.node("ReduceSum", ["attention_mask", one], "mask_sum", keepdims=0)
    before = graph.node("Sub", [whole, one], "tokens_before")
    shape = graph.node("Shape", ["attention_mask"], "mask_shape")
    total = graph.node("Gather", [shape, last], "mask_length", axis=0)
    return [graph.node("Cast", [value], f"{value}_int32", to=TensorProto.INT32) for value in (before, total)]


def _block(graph: _Graph, x: str, sizes: Sizes, number: int, shared: list[str]) -> str:
    block, head = f"blk.{number}", sizes.width // sizes.heads
    normed = graph.norm(x, f"{block}.attn_norm", sizes.width)
    query, key, value = (
        graph.linear(normed, f"{block}.{name}", heads * head, sizes.width)
        for name, heads in (
            ("attn_q", sizes.heads),
            ("attn_k", sizes.heads_of_keys),
            ("attn_v", sizes.heads_of_keys),
        )
    )
    past = [f"past_key_values.{number}.{kind}" for kind in ("key", "value")]
    attention = helper.make_node(
        "GroupQueryAttention",
        [query, key, value, *past, *shared],
        [f"{block}.attention", f"present.{number}.key", f"present.{number}.value"],
        name=f"{block}.attention",
        domain=_MICROSOFT,
        num_heads=sizes.heads,
        kv_num_heads=sizes.heads_of_keys,
        do_rotary=1,
    )
    graph.nodes.append(attention)
    mixed = graph.linear(f"{block}.attention", f"{block}.attn_output", sizes.width, sizes.width)
    x = graph.node("Add", [x, mixed], f"{block}.attended")
    normed = graph.norm(x, f"{block}.ffn_norm", sizes.width)
    gate = graph.linear(normed, f"{block}.ffn_gate", sizes.inner, sizes.width)
    up = graph.linear(normed, f"{block}.ffn_up", sizes.inner, sizes.width)
    sigmoid = graph.node("Sigmoid", [gate], f"{block}.sigmoid")
    silu = graph.node("Mul", [gate, sigmoid], f"{block}.silu")
    inner = graph.node("Mul", [silu, up], f"{block}.inner")
    return graph.node(
        "Add",
        [x, graph.linear(inner, f"{block}.ffn_down", sizes.width, sizes.inner)],
        f"{block}.out",
    )


def _inputs(sizes: Sizes) -> Iterator[tuple[str, int, list[str | int]]]:
    yield "input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]
    yield "attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]
    yield from _caches(sizes, "past_key_values", "past_sequence_length")


def _outputs(sizes: Sizes) -> Iterator[tuple[str, int, list[str | int]]]:
    yield "logits", TensorProto.FLOAT, ["batch_size", "sequence_length", sizes.vocabulary]
    yield from _caches(sizes, "present", "total_sequence_length")


def _caches(sizes: Sizes, name: str, length: str) -> Iterator[tuple[str, int, list[str | int]]]:
    for layer in range(sizes.layers):
        for kind in ("key", "value"):
            shape: list[str | int] = ["batch_size", sizes.heads_of_keys, length, sizes.width // sizes.heads]
            yield f"{name}.{layer}.{kind}", TensorProto.FLOAT, shape


def write(path: Path, precision: str, sizes: Sizes = SIZES) -> None:
    """Write the network with its matrices in a number format."""
    graph = _Graph(precision)
    tables = zip(("cosines", "sines"), _rotations(sizes.width // sizes.heads), strict=True)
    shared = [*_lengths(graph), *(graph.constant(name, table) for name, table in tables)]
    embedding = graph.constant("token_embd.weight", drawn("token_embd", (sizes.vocabulary, sizes.width)))
    x = graph.node("Gather", [embedding, "input_ids"], "token_embd", axis=0)
    for number in range(sizes.layers):
        x = _block(graph, x, sizes, number, shared)
    x = graph.norm(x, "output_norm", sizes.width)
    output = graph.linear(x, "output", sizes.vocabulary, sizes.width)
    graph.node("Identity", [output], "logits")
    inputs, outputs = (
        [helper.make_tensor_value_info(*info) for info in infos]
        for infos in (_inputs(sizes), _outputs(sizes))
    )
    network = helper.make_graph(graph.nodes, "llama", inputs, outputs, graph.weights)
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(_MICROSOFT, 1)]
    onnx.save(helper.make_model(network, opset_imports=versions, ir_version=8), path)


def config(sizes: Sizes = SIZES) -> bytes:
    """Return the `genai_config.json`: names and sizes, and that the likeliest token is taken."""
    decoder = {
        "session_options": {"provider_options": [], "intra_op_num_threads": 1},
        # The farm gives the model this name on the device.
        "filename": "model.onnx",
        "head_size": sizes.width // sizes.heads,
        "hidden_size": sizes.width,
        "num_attention_heads": sizes.heads,
        "num_hidden_layers": sizes.layers,
        "num_key_value_heads": sizes.heads_of_keys,
        "inputs": {
            "input_ids": "input_ids",
            "attention_mask": "attention_mask",
            "past_key_names": "past_key_values.%d.key",
            "past_value_names": "past_key_values.%d.value",
        },
        "outputs": {
            "logits": "logits",
            "present_key_names": "present.%d.key",
            "present_value_names": "present.%d.value",
        },
    }
    model = {
        "type": "llama",
        "bos_token_id": _BEGIN,
        "eos_token_id": _END,
        "pad_token_id": _END,
        "vocab_size": sizes.vocabulary,
        "context_length": CONTEXT,
        "decoder": decoder,
    }
    search = {"do_sample": False, "max_length": CONTEXT, "past_present_share_buffer": True}
    return json.dumps({"model": model, "search": search}, indent=1).encode()


def tokenizer(sizes: Sizes = SIZES) -> bytes:
    """Return a `tokenizer.json` of a llama: words are not merged out of letters.

    A prompt has a token for each byte. Every token is written as a word, so that all of a text can be seen.
    """
    tokens = [token if token.startswith("<") else f"{_SPACE}{token}" for token in vocabulary(sizes)]
    # What a space is read as.
    tokens[-1] = _SPACE
    special = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    steps = [
        {"type": "Prepend", "prepend": _SPACE},
        {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE},
    ]
    document = {
        "version": "1.0",
        "added_tokens": [{"id": number, "content": tokens[number], **special} for number in range(3)],
        "normalizer": {"type": "Sequence", "normalizers": steps},
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": {
            "type": "Sequence",
            "decoders": [
                {"type": "Replace", "pattern": {"String": _SPACE}, "content": " "},
                {"type": "ByteFallback"},
                {"type": "Fuse"},
            ],
        },
        "model": {
            "type": "BPE",
            "unk_token": tokens[0],
            "fuse_unk": True,
            "byte_fallback": True,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [],
        },
    }
    return json.dumps(document).encode()


def tokenizer_config(_sizes: Sizes = SIZES) -> bytes:
    """Return the `tokenizer_config.json`: that of a llama of any size."""
    words = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    return json.dumps({"tokenizer_class": "LlamaTokenizer", "add_bos_token": False, **words}).encode()


#: What stands beside the model, by name.
BESIDE = {
    "genai_config.json": config,
    "tokenizer.json": tokenizer,
    "tokenizer_config.json": tokenizer_config,
}


if __name__ == "__main__":
    write_files(sys.argv[1:], "random-{}.onnx", PRECISIONS, write, BESIDE)
