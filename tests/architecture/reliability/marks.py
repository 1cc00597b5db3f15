"""Which tests are marked with invariants and faults; read from their sources, so nothing is run."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
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
    #: Whether `make test` leaves all of it to `make test-long`.
    is_long: bool = False


@cache
def marked_tests(tests: Path = TESTS) -> list[Marked]:
    """All marked tests, by file and name."""
    found = (
        each for path in tests.rglob("test_*.py") for each in _marked(path, str(path.relative_to(tests)))
    )
    return sorted(found)


def _marked(path: Path, file: str) -> Iterator[Marked]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    module_marks = _module_marks(tree)
    on_server = _on_server(tree)
    for name, marks, arguments in _tests(tree):
        invariants = tuple(str(value) for value in _arguments(marks, "invariant"))
        faults = tuple(int(str(value)) for value in _arguments(marks, "fault"))
        if invariants or faults:
            is_left_out = bool(arguments & on_server) and not _has("on_postgresql", [*module_marks, *marks])
            is_long = _has("long", [*module_marks, *marks]) or is_left_out
            yield Marked(file=file, name=name, invariants=invariants, faults=faults, is_long=is_long)


def _tests(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr], set[str]]]:
    """Each test with the expressions its marks stand in, and its arguments.

    Marks stand in decorators, or for `TestX = mark(X)` in its value.
    """
    for node in tree.body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) if name.startswith("test_"):
                yield name, node.decorator_list, {argument.arg for argument in node.args.args}
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.startswith("Test"):
                yield name, [value], set()


def _module_marks(tree: ast.Module) -> list[ast.expr]:
    """What `pytestmark` is."""
    return [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark"
    ]


def _has(kind: str, marks: list[ast.expr]) -> bool:
    """Whether all cases of a test have a mark: those of single ones stand in a call."""
    names = (part for mark in marks for part in (mark.elts if isinstance(mark, ast.List) else [mark]))
    return any(ast.unparse(name) == f"pytest.mark.{kind}" for name in names)


def _on_server(tree: ast.Module) -> set[str]:
    """The fixtures of a file that start a PostgreSQL, which makes a test long."""
    found, seen = {"postgres"}, 0
    while seen != len(found):
        seen = len(found)
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and "fixture" in "".join(
                map(ast.unparse, node.decorator_list)
            ):
                found |= {node.name} if {argument.arg for argument in node.args.args} & found else set()
    return found


def _arguments(marks: list[ast.expr], kind: str) -> Iterator[object]:
    """What `pytest.mark.KIND(...)` is given, wherever in the expressions it stands."""
    for node in (node for mark in marks for node in ast.walk(mark)):
        match node:
            case ast.Call(func=ast.Attribute(attr=attr, value=ast.Attribute(attr="mark"))) if attr == kind:
                yield from map(ast.literal_eval, node.args)
