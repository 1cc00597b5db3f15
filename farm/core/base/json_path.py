"""Places in JSON, in the part of JSONPath (RFC 9535) that points: names, positions and `[*]`.

`$.runs[*].ms`, `$.results[0]["p 50"]`, `$.samples`; no filters, slices or descendants.
"""

import re
from collections.abc import Iterator, Sequence

MAX_PATH_CHARS = 200

#: A name, a position from 0, or None for every member or element.
Step = str | int | None

_STEP = re.compile(
    r"""\.(?P<name>[A-Za-z_][\w-]*) | \[(?P<position>[0-9]{1,9})\] | (?P<all>\[\*\]|\.\*)
    | \[(?P<quote>["'])(?P<quoted>[^"'\\]*)(?P=quote)\]""",
    re.VERBOSE | re.ASCII,
)


def json_path(text: str) -> tuple[Step, ...]:
    """Parse the steps of a path.

    Raises:
        ValueError: it is not a path of this kind; says where.
    """
    if not text.startswith("$") or len(text) > MAX_PATH_CHARS:
        raise ValueError(f"a path starts with `$` and has at most {MAX_PATH_CHARS} characters: $.runs[*].ms")
    steps: list[Step] = []
    position = 1
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None:
            raise ValueError(f"`{text[position:]}` is no step: .name, [0], [*] or ['name with spaces']")
        steps.append(_step(match))
        position = match.end()
    return tuple(steps)


def values_at(document: object, steps: Sequence[Step]) -> list[object]:
    """Return all values at a path in document order; none where the path leads nowhere."""
    values = [document]
    for step in steps:
        values = [child for value in values for child in _children(value, step)]
    return values


def _step(match: re.Match[str]) -> Step:
    if match["all"]:
        return None
    if match["position"]:
        return int(match["position"])
    name: str = match["name"] or match["quoted"]
    return name


def _children(value: object, step: Step) -> Iterator[object]:
    if isinstance(value, dict):
        if step is None:
            yield from value.values()
        elif step in value:
            yield value[step]
    elif isinstance(value, list):
        if step is None:
            yield from value
        elif isinstance(step, int) and step < len(value):
            yield value[step]
