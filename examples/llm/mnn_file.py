"""The same language model for MNN's engine, once for each number format; and the files beside it.

python examples/llm/mnn_file.py FOLDER [--tiny] [f32] [int8] [int4]

The network is written as ONNX and converted, with its attention as an operator that the converter leaves
alone. That one is then named as the engine's own, as MNN's exporter does it: it keeps the keys and values.
The converter is the extension module of the wheel alone: `MNN.tools` installs packages when it is imported.
"""

import base64
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import onnx
from network import EPSILON, SIZES, Sizes, drawn, vocabulary, write_files
from onnx import TensorProto, helper, numpy_helper

_QUANTIZED = {
    precision: ("--weightQuantBits", bits, "--weightQuantBlock", "32")
    for precision, bits in (("int8", "8"), ("int4", "4"))
}
PRECISIONS = ("f32", *_QUANTIZED)
#: What the engine calls network and weights, and how the weights of a file here end.
NETWORK, WEIGHTS, WEIGHTS_ENDING = "llm.mnn", "llm.mnn.weight", ".weight"
_BEGIN, _END = 1, 2
_CONVERT = "import sys, _tools; _tools.mnnconvert(['mnnconvert', *sys.argv[1:]])"
#: The operators that MNN's exporter puts into ONNX for its engine.
_EXPORTER = "LlmExporter"
_TO_THE_END = 2**31 - 1


class _Graph:
    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def node(self, kind: str, inputs: Sequence[str], name: str, **attributes: Any) -> str:
        self.nodes.append(helper.make_node(kind, list(inputs), [name], name=name, **attributes))
        return name

    def constant(self, name: str, values: Any, dtype: Any = numpy.float32) -> str:
        array = numpy.ascontiguousarray(values, dtype=dtype)
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def linear(self, x: str, name: str, rows: int, columns: int) -> str:
        return self.node("MatMul", [x, self.constant(f"{name}.weight", drawn(name, (rows, columns)).T)], name)

    def reshaped(self, x: str, name: str, shape: Sequence[int]) -> str:
        return self.node("Reshape", [x, self.constant(f"{name}.shape", shape, numpy.int64)], name)

    def norm(self, x: str, name: str, width: int) -> str:
        """Divide by the root mean square; the weights of it are ones in every file."""
        squares = self.node("Mul", [x, x], f"{name}.squares")
        mean = self.node("ReduceMean", [squares], f"{name}.mean", axes=[-1], keepdims=1)
        above = self.node("Add", [mean, self.constant(f"{name}.epsilon", EPSILON)], f"{name}.above")
        divided = self.node("Div", [x, self.node("Sqrt", [above], f"{name}.root")], f"{name}.divided")
        return self.node("Mul", [divided, self.constant(f"{name}.weight", numpy.ones(width))], name)

    def part(self, x: str, name: str, start: int, end: int) -> str:
        """Take a part of the last of four dimensions."""
        ends = [
            self.constant(f"{name}.{at}", [value], numpy.int64)
            for at, value in (("start", start), ("end", end), ("axis", 3))
        ]
        return self.node("Slice", [x, *ends], name)


def _turned(graph: _Graph, x: str, head: int) -> str:
    """Return the vectors of heads rotated by their positions."""
    low, high = graph.part(x, f"{x}.low", 0, head // 2), graph.part(x, f"{x}.high", head // 2, head)
    other = graph.node("Concat", [graph.node("Neg", [high], f"{x}.negative"), low], f"{x}.other", axis=3)
    kept = graph.node("Mul", [x, "cosines"], f"{x}.kept")
    return graph.node("Add", [kept, graph.node("Mul", [other, "sines"], f"{x}.moved")], f"{x}.turned")


def _add_rotations(graph: _Graph, head: int) -> None:
    frequencies = graph.constant("frequencies", [[10_000.0 ** (-numpy.arange(0, head, 2) / head)]])
    positions = graph.node("Cast", ["position_ids"], "positions", to=TensorProto.FLOAT)
    column = graph.reshaped(positions, "position_column", [1, -1, 1])
    angles = graph.node("Mul", [column, frequencies], "half_angles")
    both = graph.node("Concat", [angles, angles], "angles", axis=-1)
    of_heads = graph.reshaped(both, "angles_of_heads", [1, -1, 1, head])
    graph.node("Cos", [of_heads], "cosines")
    graph.node("Sin", [of_heads], "sines")


def _block(graph: _Graph, x: str, sizes: Sizes, number: int) -> str:
    block, head = f"blk.{number}", sizes.width // sizes.heads
    normed = graph.norm(x, f"{block}.attn_norm", sizes.width)
    query, key, value = (
        graph.reshaped(
            graph.linear(normed, f"{block}.{name}", heads * head, sizes.width),
            f"{block}.{name}.heads",
            [1, -1, heads, head],
        )
        for name, heads in (
            ("attn_q", sizes.heads),
            ("attn_k", sizes.heads_of_keys),
            ("attn_v", sizes.heads_of_keys),
        )
    )
    mixed = graph.node(
        "FusedAttention",
        [_turned(graph, query, head), _turned(graph, key, head), value, "attention_mask"],
        f"{block}.attention",
        domain=_EXPORTER,
        output_dim=sizes.width,
        kv_cache=1,
    )
    output = graph.linear(mixed, f"{block}.attn_output", sizes.width, sizes.width)
    x = graph.node("Add", [x, output], f"{block}.attended")
    normed = graph.norm(x, f"{block}.ffn_norm", sizes.width)
    gate = graph.linear(normed, f"{block}.ffn_gate", sizes.inner, sizes.width)
    up = graph.linear(normed, f"{block}.ffn_up", sizes.inner, sizes.width)
    silu = graph.node("Mul", [gate, graph.node("Sigmoid", [gate], f"{block}.sigmoid")], f"{block}.silu")
    inner = graph.node("Mul", [silu, up], f"{block}.inner")
    down = graph.linear(inner, f"{block}.ffn_down", sizes.width, sizes.inner)
    return graph.node("Add", [x, down], f"{block}.out")


def _network(sizes: Sizes) -> Any:
    """Return the network as ONNX: from embedded tokens to the logits from an index on."""
    graph = _Graph()
    _add_rotations(graph, sizes.width // sizes.heads)
    x = graph.reshaped("input_ids", "embedded", [1, -1, sizes.width])
    for number in range(sizes.layers):
        x = _block(graph, x, sizes, number)
    ends = [
        graph.constant(f"logits_{at}", [value], numpy.int32)
        for at, value in (("end", _TO_THE_END), ("axis", 1))
    ]
    x = graph.norm(graph.node("Slice", [x, "logits_index", *ends], "wanted"), "output_norm", sizes.width)
    graph.node("Identity", [graph.linear(x, "output", sizes.vocabulary, sizes.width)], "logits")
    inputs = [
        ("input_ids", TensorProto.FLOAT, ["tokens", 1, sizes.width]),
        ("attention_mask", TensorProto.FLOAT, [1, 1, "tokens", "all_tokens"]),
        ("position_ids", TensorProto.INT32, [1, "tokens"]),
        ("logits_index", TensorProto.INT32, [1]),
    ]
    logits = ("logits", TensorProto.FLOAT, [1, "wanted", sizes.vocabulary])
    network = helper.make_graph(
        graph.nodes,
        "llama",
        [helper.make_tensor_value_info(*each) for each in inputs],
        [helper.make_tensor_value_info(*logits)],
        graph.constants,
    )
    versions = [helper.make_opsetid("", 17), helper.make_opsetid(_EXPORTER, 1)]
    return helper.make_model(network, opset_imports=versions, ir_version=8)


def _convert(folder: Path, *words: str) -> None:
    """Run the converter, without a path on which it could find anything."""
    command = [sys.executable, "-I", "-c", _CONVERT, *words, "--bizCode", "benchfarm"]
    done = subprocess.run(
        command,
        env={"PATH": "", "HOME": str(folder)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise ValueError(f"MNN's converter ended with {done.returncode}: {done.stdout}{done.stderr}")


def _name_attention(document: Any) -> None:
    for operator in document["oplists"]:
        if operator["type"] == "Extra":
            operator |= {"type": "Attention", "main_type": "AttentionParam", "main": {"kv_cache": True}}


def write(path: Path, precision: str, sizes: Sizes = SIZES) -> None:
    """Write the network, and its matrices in a number format beside it."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        onnx.save(_network(sizes), folder / "llm.onnx")
        given = ("-f", "ONNX", "--modelFile", "llm.onnx", "--MNNModel", NETWORK)
        options = ("--allowCustomOp", "--transformerFuse", "--saveExternalData")
        _convert(folder, *given, *options, *_QUANTIZED.get(precision, ()))
        _convert(folder, "-f", "MNN", "--modelFile", NETWORK, "--JsonFile", "llm.json")
        document = json.loads((folder / "llm.json").read_text())
        _name_attention(document)
        (folder / "llm.json").write_text(json.dumps(document))
        _convert(folder, "-f", "JSON", "--modelFile", "llm.json", "--MNNModel", NETWORK)
        Path(f"{path}{WEIGHTS_ENDING}").write_bytes((folder / WEIGHTS).read_bytes())
        path.write_bytes((folder / NETWORK).read_bytes())


def config(_sizes: Sizes = SIZES) -> bytes:
    """Return the `config.json`: the names of all files, and that the likeliest token is taken."""
    names = {"llm_model": NETWORK, "llm_weight": WEIGHTS, "tokenizer_file": "tokenizer.txt"}
    document = {
        **names,
        "embedding_file": "embeddings_bf16.bin",
        "sampler_type": "greedy",
        "use_template": False,
    }
    return json.dumps(document).encode()


def network_config(sizes: Sizes = SIZES) -> bytes:
    """Return the `llm_config.json`: the sizes of the network."""
    document = {
        "hidden_size": sizes.width,
        "layer_nums": sizes.layers,
        "attention_mask": "float",
        "attention_type": "full",
        "attention_fused": True,
        "key_value_shape": [2, 1, 0, sizes.heads_of_keys, sizes.width // sizes.heads],
        "is_visual": False,
    }
    return json.dumps(document).encode()


def tokenizer(sizes: Sizes = SIZES) -> bytes:
    """Return a tokenizer as the engine reads it, by SentencePiece; every token is written as a word.

    A text that is no UTF-8 ends the engine's Python interface.
    """
    words = [f"\u2581{token.strip('<>')}".encode() for token in vocabulary(sizes)]
    # Format and kind; how many tokens are special, end a text, begin it; which ones.
    lines = ["430 0", "3 1 0", f"0 {_BEGIN} {_END} {_END}", str(len(words))]
    # The kind of a token: unknown, control, normal.
    kinds = [2, 3, 3, *(1 for _ in words[3:])]
    lines += [f"{base64.b64encode(word).decode()} 0 {kind}" for word, kind in zip(words, kinds, strict=True)]
    return ("\n".join(lines) + "\n").encode()


def embeddings(sizes: Sizes = SIZES) -> bytes:
    """Return the embeddings, cut to bfloat16."""
    table = drawn("token_embd", (sizes.vocabulary, sizes.width))
    return (table.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()


#: What stands beside the model, by name.
BESIDE = {
    "config.json": config,
    "llm_config.json": network_config,
    "tokenizer.txt": tokenizer,
    "embeddings_bf16.bin": embeddings,
}


if __name__ == "__main__":
    write_files(sys.argv[1:], "random-{}.mnn", PRECISIONS, write, BESIDE)
