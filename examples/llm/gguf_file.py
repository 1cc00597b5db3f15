"""A small language model of random weights as GGUF, once for each of its number formats.

python examples/llm/gguf_file.py FOLDER
"""

import sys
from pathlib import Path

import gguf
import numpy
from network import EPSILON, SIZES, drawn, vocabulary

CONTEXT = 4096
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
    writer.add_embedding_length(SIZES.width)
    writer.add_block_count(SIZES.layers)
    writer.add_feed_forward_length(SIZES.inner)
    writer.add_head_count(SIZES.heads)
    writer.add_head_count_kv(SIZES.heads_of_keys)
    writer.add_rope_dimension_count(SIZES.width // SIZES.heads)
    writer.add_layer_norm_rms_eps(EPSILON)
    writer.add_vocab_size(SIZES.vocabulary)
    _add_vocabulary(writer)
    for name, shape in SIZES.shapes():
        _add(writer, name, shape, kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def _add_vocabulary(writer: gguf.GGUFWriter) -> None:
    kinds = [gguf.TokenType.UNKNOWN, *[gguf.TokenType.CONTROL] * 2, *[gguf.TokenType.BYTE] * 256]
    words = SIZES.vocabulary - len(kinds)
    writer.add_tokenizer_model("llama")
    writer.add_token_list(vocabulary(SIZES))
    writer.add_token_types([*kinds, *[gguf.TokenType.NORMAL] * words])
    writer.add_token_scores([0.0] * SIZES.vocabulary)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)


def _add(writer: gguf.GGUFWriter, name: str, shape: tuple[int, ...], kind: gguf.GGMLQuantizationType) -> None:
    if len(shape) == 1:
        writer.add_tensor(f"{name}.weight", numpy.ones(shape, numpy.float32))
        return
    writer.add_tensor(f"{name}.weight", gguf.quants.quantize(drawn(name, shape), kind), raw_dtype=kind)


def main() -> None:
    """Write every format into the folder of the command line."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for precision in TYPES:
        write(folder / f"random-{precision}.gguf", precision)


if __name__ == "__main__":
    main()
