"""LiteRT-LM files: told by their magic, walked to the end of their sections; nothing else is believed."""

import struct
from contextlib import suppress
from pathlib import Path

import flatbuffers
import pytest
from ai_edge_litert import schema_py_generated as schema
from hypothesis import given
from hypothesis import strategies as st

from farm.blobs.inspection import check_model_file, completed_manifest
from farm.cli.files.local_variants import manifest_of_file
from farm.core.errors import VariantInvalid
from farm.core.models.contents.counted import file_contents
from farm.core.models.llm.litertlm import litertlm_sections
from farm.core.models.variant import Format

MODEL, TOKENIZER = 3, 6
BLOCK = 16 * 1024


def header(sections: list[tuple[int, int, int]]) -> bytes:
    """The header's flatbuffer: kind, begin and end of each section, as the schema has them."""
    builder = flatbuffers.Builder(256)
    objects = []
    for kind, begin, end in sections:
        builder.StartObject(4)
        builder.PrependUint64Slot(1, begin, 0)
        builder.PrependUint64Slot(2, end, 0)
        builder.PrependUint8Slot(3, kind, 0)
        objects.append(builder.EndObject())
    builder.StartVector(4, len(objects), 4)
    for item in reversed(objects):
        builder.PrependUOffsetTRelative(item)
    vector = builder.EndVector()
    builder.StartObject(1)
    builder.PrependUOffsetTRelativeSlot(0, vector, 0)
    metadata = builder.EndObject()
    builder.StartObject(2)
    builder.PrependUOffsetTRelativeSlot(1, metadata, 0)
    builder.Finish(builder.EndObject())
    return bytes(builder.Output())


def network(*, kind: int = schema.TensorType.INT8) -> bytes:
    """Two graphs that share weights of 4 x 8; each has an input and indices, which are no weights."""
    model = schema.ModelT()
    model.version, model.subgraphs = 3, []
    model.buffers = [schema.BufferT() for _ in range(3)]
    model.buffers[1].data, model.buffers[2].data = list(range(32)), [0] * 8
    for _ in range(2):
        graph = schema.SubGraphT()
        graph.tensors = []
        for shape, tensor_kind, buffer in (
            ([4, 8], kind, 1),
            ([1, 8], schema.TensorType.FLOAT32, 0),
            ([2], schema.TensorType.INT32, 2),
        ):
            tensor = schema.TensorT()
            tensor.shape, tensor.type, tensor.buffer = shape, tensor_kind, buffer
            graph.tensors.append(tensor)
        model.subgraphs.append(graph)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def litertlm(
    model: bytes | None = None, *, kind: int = MODEL, version: int = 1, sections: int = 2, past_end: int = 0
) -> bytes:
    """A whole file of a tokenizer and a model."""
    model = network() if model is None else model
    places = [(TOKENIZER, BLOCK, BLOCK + 5), (kind, 2 * BLOCK, 2 * BLOCK + len(model) + past_end)]
    head = header(places[-sections:] if sections else [])
    start = b"LITERTLM" + struct.pack("<IIIIQ", version, 5, 0, 0, 32 + len(head)) + head
    return start.ljust(BLOCK, b"\0") + b"words".ljust(BLOCK, b"\0") + model


def test_a_whole_file_is_known_with_its_weights_counted_once(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(litertlm())
    assert check_model_file(path) is Format.LITERTLM
    manifest = manifest_of_file(path, precision="int8")
    assert (manifest.parameters, manifest.backends) == (32, ("cpu", "gpu", "npu"))
    assert completed_manifest(path, manifest).inputs == ()


def test_constants_of_other_types_are_no_weights() -> None:
    content = litertlm(network(kind=schema.TensorType.INT64))
    assert file_contents(memoryview(content), Format.LITERTLM).parameters == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (litertlm()[:-1], "not all of it"),
        (litertlm()[:40], "not all of it"),
        (litertlm()[:20], "not all of it"),
        (litertlm(past_end=1), "not all of it"),
        (litertlm(version=2), "LiteRT-LM of version 2"),
        (litertlm(kind=TOKENIZER), "no section with a model"),
        (litertlm(sections=0), "no section with a model"),
    ],
)
def test_a_file_that_is_not_whole_is_refused(content: bytes, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "model.litertlm"
    path.write_bytes(content)
    with pytest.raises(VariantInvalid, match=reason):
        check_model_file(path)


@given(place=st.integers(0, 200), value=st.binary(min_size=1, max_size=8), behind=st.booleans())
def test_whatever_the_bytes_are_the_answer_is_a_number_or_a_refusal(
    place: int, value: bytes, behind: bool
) -> None:
    content = bytearray(litertlm())
    place += 2 * BLOCK if behind else 8
    content[place : place + len(value)] = value
    with suppress(VariantInvalid):
        litertlm_sections(memoryview(content))
    counted = file_contents(memoryview(content), Format.LITERTLM).parameters
    assert counted is None or counted >= 0
