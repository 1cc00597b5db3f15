"""Which tests are marked with invariants and faults; read from their sources, so nothing is run."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Marked:
    """A test, or a class of them, with what it attacks (`invariant`) or plays (`fault`)."""

    #: From the folder of the tests.
    file: str
    name: str
    invariants: tuple[str, ...] = ()
    faults: tuple[int, ...] = ()


def marked_tests(tests: Path = TESTS) -> list[Marked]:
    """All marked tests, by file and name."""
    found = (
        each for path in tests.rglob("test_*.py") for each in _marked(path, str(path.relative_to(tests)))
    )
    return sorted(found)


def _marked(path: Path, file: str) -> Iterator[Marked]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for name, marks in _tests(tree):
        invariants = tuple(str(value) for value in _arguments(marks, "invariant"))
        faults = tuple(int(str(value)) for value in _arguments(marks, "fault"))
        if invariants or faults:
            yield Marked(file=file, name=name, invariants=invariants, faults=faults)


def _tests(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr]]]:
    """Each test with the expressions its marks stand in: decorators, or for `TestX = mark(X)` its value."""
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield name, node.decorator_list
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.startswith("Test"):
                yield name, [value]


def _arguments(marks: list[ast.expr], kind: str) -> Iterator[object]:
    """What `pytest.mark.KIND(...)` is given, wherever in the expressions it stands."""
    for node in (node for mark in marks for node in ast.walk(mark)):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=ast.Attribute(attr="mark"))) if attr == kind:
                yield from map(ast.literal_eval, node.args)
