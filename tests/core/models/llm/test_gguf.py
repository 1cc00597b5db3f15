"""GGUF files: told by their magic, walked to the end of their tensors; nothing else is believed."""

import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.blobs.inspection import check_model_file, completed_manifest
from farm.cli.files.local_variants import manifest_of_file
from farm.core.errors import VariantInvalid
from farm.core.models.llm.gguf import gguf_parameters
from farm.core.models.variant import Format

F32, F16, Q4_0, OF_A_LATER_VERSION = 0, 1, 2, 99


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value)) + value.encode()


def key(name: str, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def tensor(name: str, shape: tuple[int, ...], kind: int, offset: int) -> bytes:
    sizes = struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
    return text(name) + sizes + struct.pack("<IQ", kind, offset)


KEYS = (
    key("general.architecture", 8, text("llama")),
    key("general.alignment", 4, struct.pack("<I", 64)),
    key("llama.attention.scale", 6, struct.pack("<f", 1.0)),
    key("tokenizer.ggml.tokens", 9, struct.pack("<IQ", 8, 2) + text("a") + text("b")),
    key("tokenizer.ggml.scores", 9, struct.pack("<IQff", 6, 2, 0.0, 0.0)),
)
TENSORS = (tensor("embd", (64, 4), F16, 0), tensor("out", (32, 2), Q4_0, 512))
DATA = 512 + 36


def gguf(keys: tuple[bytes, ...] = KEYS, tensors: tuple[bytes, ...] = TENSORS, version: int = 3) -> bytes:
    head = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys)) + b"".join([*keys, *tensors])
    return head + bytes(-len(head) % 64) + bytes(DATA)


def parameters(content: bytes) -> int:
    return gguf_parameters(memoryview(content))


def test_a_whole_file_is_known_with_its_weights_counted(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(gguf())
    assert check_model_file(path) is Format.GGUF
    manifest = manifest_of_file(path, precision="q4_0")
    assert (manifest.parameters, manifest.backends) == (
        64 * 4 + 32 * 2,
        ("cpu", "opencl", "vulkan", "hexagon"),
    )
    assert completed_manifest(path, manifest) == manifest
    assert manifest.inputs_unread == "gguf files do not state their inputs"


def test_a_file_cut_anywhere_is_refused() -> None:
    whole = gguf()
    assert parameters(whole) == 320
    for kept in range(4, len(whole)):
        with pytest.raises(VariantInvalid, match="not a whole model file: it starts as gguf"):
            parameters(whole[:kept])


def test_a_type_of_tensors_that_came_later_is_counted_and_not_measured() -> None:
    assert parameters(gguf(tensors=(tensor("x", (7,), OF_A_LATER_VERSION, 0),))) == 7


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (gguf(version=1), "GGUF of version 1"),
        (gguf(tensors=()), "0 tensors"),
        (b"GGUF" + struct.pack("<IQQ", 3, 2**63, 0), "tensors and 0 keys"),
        (b"GGUF" + struct.pack("<IQQ", 3, 1, 2**63), "1 tensors and"),
        (gguf(keys=(key("k", 13, b""),)), "a value of type 13"),
        (gguf(keys=(key("k", 9, struct.pack("<IQ", 9, 1)),)), "a value of type 9"),
        (gguf(keys=(key("k", 9, struct.pack("<IQ", 8, 2**40)),)), "texts"),
        (gguf(keys=(key("k", 9, struct.pack("<IQ", 10, 2**61)),)), "not all of it"),
        (gguf(keys=(key("general.alignment", 4, bytes(4)),)), "an alignment of 0"),
        (gguf(tensors=(tensor("x", (1,) * 5, F32, 0),)), "a tensor of 5 dimensions"),
        (gguf(tensors=(tensor("x", (2**62, 2**62), OF_A_LATER_VERSION, 0),)), "weights"),
        (gguf(tensors=(tensor("x", (4,), F32, 2**63),)), "not all of it"),
    ],
)
def test_what_no_file_has_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(VariantInvalid, match=said):
        parameters(content)


@given(at=st.integers(4, len(gguf()) - 1), byte=st.integers(0, 255))
def test_a_damaged_byte_is_refused_or_changes_no_more_than_a_number(at: int, byte: int) -> None:
    content = bytearray(gguf())
    content[at] = byte
    with suppress(VariantInvalid):
        assert 0 <= parameters(bytes(content)) < 2**53


def test_a_vocabulary_without_an_end_is_answered_soon() -> None:
    words = key("tokens", 9, struct.pack("<IQ", 8, 400_000) + text("") * 400_000)
    began = time.process_time()
    assert parameters(gguf(keys=(words,))) == 320
    assert time.process_time() - began < 5
