"""The same language model as an ExecuTorch program (`.pte`), once for each number format; and its tokenizer.

python examples/llm/executorch_file.py FOLDER [--tiny] [f32] [int8]

The network is written in torch, exported with as many tokens at once as a prompt has, and lowered to XNNPACK.
Weights are those of the GGUF files. Norms, embeddings, rotations and the cache of keys and values stay
float32 in every number format.
"""

import struct
import sys
from pathlib import Path
from typing import Any

import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from executorch.exir import EdgeCompileConfig, to_edge_transform_and_lower
from network import EPSILON, SIZES, Sizes, drawn, vocabulary, write_files
from torch import nn

#: Tokens that the cache has room for; a prompt may have all of them but one.
CONTEXT = 512
PRECISIONS = ("f32", "int8")
TOKENIZER = "tokenizer.bin"
#: Token 1 begins a text, and token 2 ends it.
_BEGIN, _END = 1, 2


class _Attention(nn.Module):
    def __init__(self, sizes: Sizes, block: str) -> None:
        super().__init__()
        self.sizes, self.head = sizes, sizes.width // sizes.heads
        keys = self.head * sizes.heads_of_keys
        self.query = _linear(f"{block}.attn_q", sizes.width, sizes.width)
        self.key = _linear(f"{block}.attn_k", keys, sizes.width)
        self.value = _linear(f"{block}.attn_v", keys, sizes.width)
        self.output = _linear(f"{block}.attn_output", sizes.width, sizes.width)
        for name in ("keys", "values"):
            self.register_buffer(name, torch.zeros(1, sizes.heads_of_keys, CONTEXT, self.head))

    def forward(
        self, x: torch.Tensor, positions: torch.Tensor, turns: Any, mask: torch.Tensor
    ) -> torch.Tensor:
        tokens, groups = x.shape[1], self.sizes.heads // self.sizes.heads_of_keys
        query, key, value = (
            matrix(x).view(1, tokens, heads, self.head).transpose(1, 2)
            for matrix, heads in (
                (self.query, self.sizes.heads),
                (self.key, self.sizes.heads_of_keys),
                (self.value, self.sizes.heads_of_keys),
            )
        )
        query, key = _turned(query, turns), _turned(key, turns)
        self.keys[:, :, positions], self.values[:, :, positions] = key, value
        # The heads that share keys are rows of one matrix.
        grouped = query.reshape(1, self.sizes.heads_of_keys, groups * tokens, self.head) * self.head**-0.5
        scores = grouped @ self.keys.transpose(2, 3)
        scores = scores.view(1, self.sizes.heads, tokens, CONTEXT) + mask
        shares = scores.softmax(-1).view(1, self.sizes.heads_of_keys, groups * tokens, CONTEXT)
        mixed = (shares @ self.values).view(1, self.sizes.heads, tokens, self.head)
        return self.output(mixed.transpose(1, 2).reshape(1, tokens, self.sizes.width))


class _Block(nn.Module):
    def __init__(self, sizes: Sizes, number: int) -> None:
        super().__init__()
        block = f"blk.{number}"
        self.attention = _Attention(sizes, block)
        self.gate = _linear(f"{block}.ffn_gate", sizes.inner, sizes.width)
        self.up = _linear(f"{block}.ffn_up", sizes.inner, sizes.width)
        self.down = _linear(f"{block}.ffn_down", sizes.width, sizes.inner)

    def forward(
        self, x: torch.Tensor, positions: torch.Tensor, turns: Any, mask: torch.Tensor
    ) -> torch.Tensor:
        x = x + self.attention(_norm(x), positions, turns, mask)
        normed = _norm(x)
        return x + self.down(nn.functional.silu(self.gate(normed)) * self.up(normed))


class Llama(nn.Module):
    """The network with its cache: tokens from a position on, to the logits behind the last of them."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        head = sizes.width // sizes.heads
        self.embedding = nn.Embedding(sizes.vocabulary, sizes.width)
        self.embedding.weight = _weights("token_embd", sizes.vocabulary, sizes.width)
        self.blocks = nn.ModuleList(_Block(sizes, number) for number in range(sizes.layers))
        self.output = _linear("output", sizes.vocabulary, sizes.width)
        angles = torch.outer(torch.arange(CONTEXT), 10_000.0 ** (-torch.arange(0, head, 2) / head))
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, tokens: torch.Tensor, start: torch.Tensor) -> torch.Tensor:
        """Return the logits of the token behind the last one."""
        positions = start + torch.arange(tokens.shape[1])
        turns = self.cosines[positions], self.sines[positions]
        mask = torch.where(torch.arange(CONTEXT) <= positions[:, None], 0.0, float("-inf"))
        x = self.embedding(tokens)
        for block in self.blocks:
            x = block(x, positions, turns, mask)
        return self.output(_norm(x[:, -1:]))[:, -1]


def _weights(name: str, rows: int, columns: int) -> nn.Parameter:
    return nn.Parameter(torch.from_numpy(drawn(name, (rows, columns))), requires_grad=False)


def _linear(name: str, rows: int, columns: int) -> nn.Linear:
    linear = nn.Linear(columns, rows, bias=False)
    linear.weight = _weights(name, rows, columns)
    return linear


def _norm(x: torch.Tensor) -> torch.Tensor:
    """Return the vectors by their root mean square; its weights are ones in every file."""
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPSILON)


def _turned(x: torch.Tensor, turns: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    """Return the vectors of heads rotated by their positions."""
    cosines, sines = turns
    low, high = x.chunk(2, -1)
    return torch.cat([low * cosines - high * sines, high * cosines + low * sines], -1)


def tokenizer(sizes: Sizes = SIZES) -> bytes:
    """Return a tokenizer in the format of llama2.c: of each token its score, its length and its text.

    Words are not merged out of letters: a prompt has a token for each byte, and one for the space that the
    runtime puts before it. Every token is written as a word, so that all of a text can be seen.
    """
    tokens = [f" {token.strip('<>')}".encode() for token in vocabulary(sizes)]
    # The runtime looks the space up.
    tokens[-1] = b" "
    head = struct.pack("<iiii", len(tokens), _BEGIN, _END, max(map(len, tokens)))
    return head + b"".join(struct.pack("<fi", 0.0, len(token)) + token for token in tokens)


def write(path: Path, precision: str, sizes: Sizes = SIZES) -> None:
    """Write the program with its matrices in a number format."""
    net = Llama(sizes).eval()
    if precision == "int8":
        net = _quantized(net)
    example = torch.ones(1, 3, dtype=torch.long), torch.zeros(1, dtype=torch.long)
    tokens = torch.export.Dim("tokens", min=1, max=CONTEXT - 1)
    exported = torch.export.export(
        net, example, dynamic_shapes=({1: tokens}, None), prefer_deferred_runtime_asserts_over_guards=True
    )
    # What the runner asks a program for (extension/llm/runner/llm_runner_helper.cpp).
    constants = {
        "get_max_seq_len": CONTEXT,
        "get_max_context_len": CONTEXT,
        "get_vocab_size": sizes.vocabulary,
        "get_bos_id": _BEGIN,
        "get_eos_ids": [_END],
        "use_kv_cache": True,
        "enable_dynamic_shape": True,
    }
    lowered = to_edge_transform_and_lower(
        exported,
        partitioner=[XnnpackPartitioner()],
        constant_methods=constants,
        compile_config=EdgeCompileConfig(_check_ir_validity=False),
    )
    path.write_bytes(lowered.to_executorch().buffer)


def _quantized(net: nn.Module) -> nn.Module:
    """Return the network with 8-bit weights by row; activations are quantized by their range in each run."""
    from torchao.quantization import Int8DynamicActivationIntxWeightConfig, quantize_
    from torchao.quantization.granularity import PerAxis

    quantize_(
        net, Int8DynamicActivationIntxWeightConfig(weight_dtype=torch.int8, weight_granularity=PerAxis(0))
    )
    return net


if __name__ == "__main__":
    write_files(sys.argv[1:], "random-{}.pte", PRECISIONS, write, {TOKENIZER: tokenizer})
