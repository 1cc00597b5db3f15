"""How the code is laid out and written, as far as a program can tell."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tests.architecture.sources import ROOT, name_of, sources, syntax_tree, tracked

#: One subject, one file: what is longer holds two.
MAX_LINES = 400
NOT_A_SUBJECT = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


def test_a_module_is_named_by_its_subject() -> None:
    offenders = [
        name_of(path)
        for path in sources("farm", "agents", "benchfarm", "tests")
        if path.stem in NOT_A_SUBJECT
    ]
    assert offenders == []


def test_a_file_of_code_has_at_most_400_lines() -> None:
    lengths = {
        name_of(path): len(path.read_text().splitlines())
        for path in sources("farm", "agents", "benchfarm", "benchmarks", "tests")
    }
    assert {name: length for name, length in lengths.items() if length > MAX_LINES} == {}


#: Each takes a second or more of every worker of a test run, also of those that run no test with it.
LOADED_BY_USERS = {"torch", "mcp", "schemathesis"}


def test_no_file_of_tests_loads_what_takes_long_when_it_is_collected() -> None:
    offenders = [
        f"{name_of(path)}: {name}"
        for path in sources("tests")
        if path.name.startswith("test_") or path.name == "conftest.py"
        for name in imported_at_once(syntax_tree(path))
        if name.partition(".")[0] in LOADED_BY_USERS
    ]
    assert offenders == []


def imported_at_once(tree: ast.Module) -> Iterator[str]:
    """Yield the modules that a module imports when it is loaded, by a statement or by `importorskip`."""
    for node in tree.body:
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(module=str(module)):
                yield module
            case ast.Assign(
                value=ast.Call(func=ast.Attribute(attr="importorskip"), args=[ast.Constant(value)])
            ):
                yield str(value)


def without_docstring(tree: ast.Module) -> Iterator[str]:
    """Public classes and functions that do not say what they are; a method may do so by its name."""
    if ast.get_docstring(tree) is None:
        yield "the module"
    for node in tree.body:
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if not node.name.startswith("_") and ast.get_docstring(node) is None:
            yield node.name


def test_every_public_name_has_a_docstring() -> None:
    offenders = [
        f"{name_of(path)}: {name}"
        for path in sources("farm", "agents", "benchfarm")
        for name in without_docstring(syntax_tree(path))
    ]
    assert offenders == []


def test_torch_is_asked_for_in_the_makefile_only() -> None:
    asking = re.compile(r"\btorch(vision)?\s*(==|>=|~=|<)\s*\d")
    offenders = [
        name_of(path)
        for path in tracked()
        if path.name == "pyproject.toml" or path.suffix in (".txt", ".cfg", ".sh", ".yaml", ".yml", ".toml")
        if asking.search(path.read_text(errors="replace"))
    ]
    assert offenders == []
    assert len(asking.findall((ROOT / "Makefile").read_text())) == 2


def test_nothing_names_the_machine_it_was_written_on() -> None:
    # Ann is the reader of the walk-throughs, and nobody's name.
    home = re.compile(r"(?<![\w.])/(home|Users|root)/(?!ann/)[\w.]")
    here = [f"{ROOT}/", f"{Path.home()}/"]
    offenders = [
        name_of(path)
        for path in tracked()
        if (text := path.read_text(errors="replace"))
        # Tests may make up a home; nobody may name this one.
        and (any(place in text for place in here) or ("tests" not in path.parts and home.search(text)))
    ]
    assert offenders == []


def test_nothing_names_a_package_index() -> None:
    index = re.compile(r"--(extra-)?index-url[ =]\S*//|(?<!\w)(index|extra-index)-url\s*=\s*\S")
    offenders = [name_of(path) for path in tracked() if index.search(path.read_text(errors="replace"))]
    assert offenders == []
