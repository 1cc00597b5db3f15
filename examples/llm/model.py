"""A small language model of random weights as GGUF, once for each of its number formats.

python examples/llm/model.py FOLDER

The architecture is llama's; the vocabulary is made up. Weights are drawn, not trained: times, memory and
placement are real, what it would write is nothing.
"""

import sys
from pathlib import Path

import gguf
import numpy

LAYERS, WIDTH, INNER, HEADS, HEADS_OF_KEYS = 6, 512, 1536, 8, 4
VOCABULARY, CONTEXT, SEED = 4096, 4096, 17
#: By the word that matrices have for the precision: the type of all matrices, and how the file is marked.
TYPES = {
    "f16": (gguf.GGMLQuantizationType.F16, gguf.LlamaFileType.MOSTLY_F16),
    "q8_0": (gguf.GGMLQuantizationType.Q8_0, gguf.LlamaFileType.MOSTLY_Q8_0),
    "q4_0": (gguf.GGMLQuantizationType.Q4_0, gguf.LlamaFileType.MOSTLY_Q4_0),
}


def write(path: Path, precision: str) -> None:
    """Write the model with its matrices in a number format; vectors stay float32."""
    kind, file_type = TYPES[precision]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_name("random weights")
    writer.add_file_type(file_type)
    writer.add_quantization_version(gguf.GGML_QUANT_VERSION)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_block_count(LAYERS)
    writer.add_feed_forward_length(INNER)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(HEADS_OF_KEYS)
    writer.add_rope_dimension_count(WIDTH // HEADS)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(VOCABULARY)
    _add_vocabulary(writer)
    for name, shape in _shapes():
        _add(writer, name, shape, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: gguf.GGUFWriter) -> None:
    """Add three control tokens, one for each byte, and words without a meaning."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    words = VOCABULARY - len(tokens)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(tokens + [f"w{number}" for number in range(words)])
    writer.add_token_types([*kinds, *[gguf.TokenType.NORMAL] * words])
    writer.add_token_scores([0.0] * VOCABULARY)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def _shapes() -> list[tuple[str, tuple[int, ...]]]:
    keys = WIDTH // HEADS * HEADS_OF_KEYS
    shapes: list[tuple[str, tuple[int, ...]]] = [("token_embd", (VOCABULARY, WIDTH))]
    for layer in range(LAYERS):
        parts = {
            "attn_norm": (WIDTH,),
            "attn_q": (WIDTH, WIDTH),
            "attn_k": (keys, WIDTH),
            "attn_v": (keys, WIDTH),
            "attn_output": (WIDTH, WIDTH),
            "ffn_norm": (WIDTH,),
            "ffn_gate": (INNER, WIDTH),
            "ffn_up": (INNER, WIDTH),
            "ffn_down": (WIDTH, INNER),
        }
        shapes += [(f"blk.{layer}.{name}", shape) for name, shape in parts.items()]
    return [*shapes, ("output_norm", (WIDTH,)), ("output", (VOCABULARY, WIDTH))]


def _add(writer: gguf.GGUFWriter, name: str, shape: tuple[int, ...], kind: gguf.GGMLQuantizationType) -> None:
    if len(shape) == 1:
        writer.add_tensor(f"{name}.weight", numpy.ones(shape, numpy.float32))
        return
    # The same weights in every format, whichever is written first.
    draw = numpy.random.default_rng([SEED, *name.encode()])
    values = draw.standard_normal(shape, dtype=numpy.float32) / numpy.sqrt(shape[1], dtype=numpy.float32)
    writer.add_tensor(f"{name}.weight", gguf.quants.quantize(values, kind), raw_dtype=kind)


def main() -> None:
    """Write every format into the folder of the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for precision in TYPES:
        write(folder / f"random-{precision}.gguf", precision)


if __name__ == "__main__":
    main()
