"""Calls drawn from the OpenAPI description of a farm: mostly well formed, hostile in some places."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any
from urllib.parse import quote

_PREFIX = "#/components/schemas/"
_DEEPEST = 6
#: What parsers, databases, paths and terminals have stumbled over.
HOSTILE: tuple[Any, ...] = (
    *(
        "",
        " ",
        "\x00",
        "\ud7ff",
        "é\u0301",
        "../../etc/passwd",
        "%2e%2e%2f",
        "'; --",
        '"',
        "\x1b]52;c;AA\x07",
        "a" * 5000,
    ),
    *(0, -1, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**40, 1e308, -0.0),
    *(None, True, [], {}, [[[[[]]]]], {"": {}}, ["a"] * 300),
    *(
        "0" * 64,
        "f" * 63,
        "2026-02-30T25:61:61Z",
        "9999-12-31T23:59:59Z",
        "1",
        "mobilenet_v2",
        "phone-1",
        "bench-1",
    ),
)
#: Bodies that are no document, with what they claim to be.
_RAW = (b"", b"{", b"[" * 2000, b'{"a": 1e999}', b"\xff\xfe", b'{"a": "\\ud800"}', b"null", b"-", b"{}" * 500)


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzedCall:
    """One request below the farm's address."""

    method: str
    path: str
    query: dict[str, str]
    body: Any = None
    #: Sent instead of `body`.
    raw: bytes | None = None


@dataclass(frozen=True, slots=True)
class CallSource:
    """Draws calls; the same random numbers give the same calls.

    A tenth of all values, and of all bodies, are hostile.
    """

    description: Mapping[str, Any]
    random: Random
    calls: list[tuple[str, str, Mapping[str, Any]]] = field(init=False)

    def __post_init__(self) -> None:
        """List the calls of the description."""
        listed = [
            (method.upper(), path, call)
            for path, calls in self.description["paths"].items()
            for method, call in calls.items()
        ]
        object.__setattr__(self, "calls", listed)

    def draw(self) -> FuzzedCall:
        """Return the next call, of any route."""
        method, path, call = self.random.choice(self.calls)
        query: dict[str, str] = {}
        for parameter in call.get("parameters", ()):
            name, place = parameter["name"], parameter["in"]
            value = str(self.value(parameter["schema"]))
            if place == "path":
                # A part of a path is never empty.
                path = path.replace(
                    f"{{{name}}}", quote(value[:500].encode("utf-8", "replace"), safe="") or "0"
                )
            elif place == "query" and (parameter.get("required") or self.random.random() < 0.5):
                # No one waits for events that no one makes.
                query[name] = "0" if name == "wait_s" else value[:1000]
        content = call.get("requestBody", {}).get("content", {}).get("application/json")
        if content is None and method == "PUT":
            return FuzzedCall(method=method, path=path, query=query, raw=self.random.choice(_RAW))
        if content is None:
            return FuzzedCall(method=method, path=path, query=query)
        if self.random.random() < 0.1:
            return FuzzedCall(method=method, path=path, query=query, raw=self.random.choice(_RAW))
        return FuzzedCall(method=method, path=path, query=query, body=self.value(content["schema"]))

    def value(self, schema: Mapping[str, Any], depth: int = 0) -> Any:
        """Return a value of a schema, or a hostile one."""
        if self.random.random() < 0.1 or depth > _DEEPEST:
            return self.random.choice(HOSTILE)
        if "$ref" in schema:
            return self.value(
                self.description["components"]["schemas"][schema["$ref"].removeprefix(_PREFIX)], depth
            )
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self.value(self.random.choice(schema[choice]), depth + 1)
        if "const" in schema or "enum" in schema:
            return schema.get("const", self.random.choice(schema.get("enum", [None])))
        return self._typed(schema, depth)

    def _typed(self, schema: Mapping[str, Any], depth: int) -> Any:
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                items = schema.get("items", {})
                least = min(schema.get("minItems", 0), 5)
                return [self.value(items, depth + 1) for _ in range(self.random.randint(least, least + 2))]
            case "integer":
                least = int(schema.get("minimum", 0))
                return self.random.randint(least, max(least, int(schema.get("maximum", least + 20))))
            case "number":
                return self.random.uniform(schema.get("minimum", 0), schema.get("maximum", 100))
            case "boolean":
                return self.random.random() < 0.5
            case "null":
                return None
            case _:
                return self.random.choice(
                    ("a", "1", "x" * 64, "cpu", "2026-01-01T00:00:00Z", "phone-1", "0" * 64)
                )

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        made = {
            name: self.value(inner, depth + 1)
            for name, inner in schema.get("properties", {}).items()
            if name in required or self.random.random() < 0.3
        }
        if isinstance(more := schema.get("additionalProperties"), dict) and self.random.random() < 0.7:
            made["a"] = self.value(more, depth + 1)
        return made
