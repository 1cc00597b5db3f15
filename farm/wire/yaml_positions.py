"""Strict reading of users' YAML as plain data, with the lines of its parts.

ruamel.yaml, which keeps positions, would not do: it reads `yes` and `010` by the rules of YAML 1.2, takes
twice the time, and its nodes would still be walked for tags, anchors and dates.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

#: Hundreds of times what people write by hand; reading takes seconds from here on.
MAX_TEXT_CHARS = 200_000

_PREFIX = "tag:yaml.org,2002:"
_PLAIN_TAGS = frozenset(_PREFIX + name for name in ("map", "seq", "str", "int", "float", "bool", "null"))


class YamlNotPlain(Exception):
    """A text is not YAML of plain data; the message says where."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def load_plain(text: str, *, noun: str) -> dict[str, Any]:
    """Read YAML as plain data: texts, numbers, true, false and null in lists and mappings.

    Args:
        text: the YAML.
        noun: the kind of the document: `matrix`.

    Raises:
        YamlNotPlain: not YAML (tells line and column); not a mapping at the top; a key that is there twice
            or is no text; a date, a merge key or anything else beyond plain data.
    """
    if len(text) > MAX_TEXT_CHARS:
        raise YamlNotPlain(f"{len(text)} characters, at most {MAX_TEXT_CHARS}")
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        if not isinstance(node, MappingNode):
            raise YamlNotPlain(f"a {noun} is a mapping: `name: ...` and so on")
        if problem := next(_problems(node, set(), noun), None):
            raise problem
        data: dict[str, Any] = loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error) from error
    except yaml.YAMLError as error:
        raise YamlNotPlain(f"not YAML: {error}") from error
    except (ValueError, KeyError) as error:
        raise YamlNotPlain(f"a value is not what its YAML tag says: {error}") from error
    except RecursionError as error:
        raise YamlNotPlain("nested too deep") from error
    return data


def line_of(yaml_text: str, path: Sequence[str | int]) -> int | None:
    """Return the line, from 1, of a place in a YAML text; of its parent where the place does not exist.

    None when nothing of the path is there, or the text is not YAML.
    """
    try:
        node = yaml.compose(yaml_text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        return None
    line = None
    for part in path:
        child = _child(node, part)
        if child is None:
            break
        place, node = child
        line = place.start_mark.line + 1
    return line


def _child(node: Node | None, part: str | int) -> tuple[Node, Node] | None:
    """Return the node that marks a part, its key or the part itself, and the part."""
    if isinstance(node, MappingNode):
        pairs = ((key, value) for key, value in node.value if key.value == part)
        return next(pairs, None)
    if isinstance(node, SequenceNode) and isinstance(part, int) and part < len(node.value):
        return node.value[part], node.value[part]
    return None


def _problems(node: Node, seen: set[int], noun: str) -> Iterator[YamlNotPlain]:
    if id(node) in seen:
        return
    seen.add(id(node))
    if node.tag not in _PLAIN_TAGS:
        kind = node.tag.removeprefix(_PREFIX)
        yield YamlNotPlain(
            f"{_position_text(node)}: a {noun} has no use for a YAML {kind}", hint="put it in quotes"
        )
    if isinstance(node, MappingNode):
        yield from _key_problems(node)
    for child in _children(node):
        yield from _problems(child, seen, noun)


def _key_problems(node: MappingNode) -> Iterator[YamlNotPlain]:
    line_by_key: dict[str, int] = {}
    for key, _ in node.value:
        if not isinstance(key, ScalarNode) or key.tag != f"{_PREFIX}str":
            yield YamlNotPlain(f"{_position_text(key)}: a key is a text", hint="put it in quotes")
        elif key.value in line_by_key:
            yield YamlNotPlain(
                f"{_position_text(key)}: `{key.value}` is there already, in line {line_by_key[key.value]}"
            )
        else:
            line_by_key[key.value] = key.start_mark.line + 1


def _children(node: Node) -> Iterator[Node]:
    if isinstance(node, MappingNode):
        for _, value in node.value:
            yield value
    elif isinstance(node, SequenceNode):
        yield from node.value


def _position_text(node: Node) -> str:
    return f"line {node.start_mark.line + 1}, column {node.start_mark.column + 1}"


def _not_yaml(error: yaml.MarkedYAMLError) -> YamlNotPlain:
    what = error.problem or error.context or "unreadable"
    mark = error.problem_mark or error.context_mark
    place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
    return YamlNotPlain(f"{place}not YAML: {what}")
