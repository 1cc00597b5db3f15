"""ONNX files, read by walking their messages past the weights (onnx.proto, IR versions 3 to 13)."""

from collections.abc import Iterator, Mapping

from farm.core.errors import VariantInvalid
from farm.core.models.protobuf import BYTES, VARINT, MalformedMessage, TruncatedMessage, protobuf_fields
from farm.core.models.variant import MOST_FILES

#: ModelProto: ir_version, producer_name, producer_version, domain, model_version, doc_string, graph,
#: opset_import, metadata_props, training_info, functions.
_WIRE_OF_MODEL: Mapping[int, int] = {
    **dict.fromkeys((1, 5), VARINT),
    **dict.fromkeys((2, 3, 4, 6, 7, 8, 14, 20, 25), BYTES),
}
_IR_VERSION, _GRAPH, _OPSET_IMPORT = 1, 7, 8
#: Fields of each message that lead to tensors.
_PARTS: Mapping[str, Mapping[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse tensor"},
    "function": {7: "node"},
    "training": {1: "graph", 2: "graph"},
    "node": {5: "attribute"},
    "attribute": {
        5: "tensor",
        6: "graph",
        10: "tensor",
        11: "graph",
        22: "sparse tensor",
        23: "sparse tensor",
    },
    "sparse tensor": {1: "tensor", 2: "tensor"},
}
_TENSOR_EXTERNAL_DATA, _TENSOR_DATA_LOCATION, _EXTERNAL = 13, 14, 1
#: StringStringEntryProto, and the key under which `external_data` has the path (docs/ExternalData.md).
_KEY, _VALUE, _LOCATION = 1, 2, b"location"
_LONGEST_PATH = 4096
_ONE_FILE = "save it in fewer files: export with external_data=False, or onnx.save(model, path)"
#: A large network has some 100 000 messages; this many take about a second.
_MOST_MESSAGES = 500_000


#: The kind of a message, and where it begins and ends.
_Message = tuple[str, int, int]


def is_onnx(content: memoryview) -> bool:
    """Tell whether the content is one whole ONNX model, from the fields of its outermost message.

    Raises:
        VariantInvalid: it starts as one, and its end is missing.
    """
    seen: set[int] = set()
    try:
        for number, wire, _, _ in protobuf_fields(content):
            if wire != _WIRE_OF_MODEL.get(number, wire):
                return False
            seen.add(number)
    except TruncatedMessage:
        if _IR_VERSION in seen and seen <= _WIRE_OF_MODEL.keys():
            raise VariantInvalid(
                f"not a whole model file: it starts as onnx, and {len(content)} bytes are not all of it",
                hint="it was cut short or damaged on its way: copy it again",
            ) from None
        return False
    except MalformedMessage:
        return False
    return {_IR_VERSION, _GRAPH, _OPSET_IMPORT} <= seen


def external_files(content: memoryview) -> tuple[str, ...]:
    """Return the paths of the files in which a model keeps weights: relative to its own, as it states them.

    Raises:
        VariantInvalid: it does not state one, there are too many, or its messages cannot be read.
    """
    paths: dict[str, None] = {}
    try:
        for kind, start, stop in _messages(content):
            if kind == "tensor" and _is_external(content, start, stop):
                paths[_location(content, start, stop)] = None
                if len(paths) > MOST_FILES:
                    raise VariantInvalid(
                        f"its weights are in more than {MOST_FILES} files (external data)", hint=_ONE_FILE
                    )
    except MalformedMessage as error:
        raise VariantInvalid(f"not a whole ONNX model: {error}") from error
    return tuple(paths)


def _messages(content: memoryview) -> Iterator[_Message]:
    """Yield the model and every message inside it that is or leads to a tensor."""
    waiting: list[_Message] = [("model", 0, len(content))]
    count = 0
    while waiting:
        message = waiting.pop()
        yield message
        kind, start, stop = message
        parts = _PARTS.get(kind)
        if parts is not None:
            waiting += [
                (parts[number], value, end)
                for number, wire, value, end in protobuf_fields(content, start, stop)
                if wire == BYTES and number in parts
            ]
        count += 1
        if count + len(waiting) > _MOST_MESSAGES:
            raise MalformedMessage(f"more than {_MOST_MESSAGES} messages")


def _is_external(content: memoryview, start: int, stop: int) -> bool:
    return any(
        number == _TENSOR_EXTERNAL_DATA or (number == _TENSOR_DATA_LOCATION and value == _EXTERNAL)
        for number, _, value, _ in protobuf_fields(content, start, stop)
    )


def _location(content: memoryview, start: int, stop: int) -> str:
    """Return the path of the file that has the data of a tensor."""
    for number, wire, value, end in protobuf_fields(content, start, stop):
        if number != _TENSOR_EXTERNAL_DATA or wire != BYTES:
            continue
        entry = {
            key: bytes(content[first:last][: _LONGEST_PATH + 1])
            for key, kind, first, last in protobuf_fields(content, value, end)
            if kind == BYTES
        }
        if entry.get(_KEY) == _LOCATION and (path := entry.get(_VALUE)):
            return path.decode(errors="replace").removeprefix("./")
    raise VariantInvalid("its weights are in another file, and it does not state which", hint=_ONE_FILE)
