"""Modules and lines that must be read to understand an entry point: names followed through imports."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tests.architecture.sources import ROOT, sources, syntax_tree

_Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


@dataclass(frozen=True, slots=True)
class Name:
    """A name in a module; without `name`, the module itself."""

    module: str
    name: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """The modules that an entry point leads to, and the lines of the definitions used there."""

    modules: frozenset[str]
    lines: int


def reach(entry: str) -> Reach:
    """Return what `package.module:function` leads to; a budget for reading, not a call graph."""
    module, _, function = entry.partition(":")
    start = Name(module, function)
    if _definition(start) is None:
        raise LookupError(entry)
    reached, open_names = {start}, [start]
    while open_names:
        news = set(_used_names(open_names.pop())) - reached
        reached |= news
        open_names += news
    definitions = [node for name in reached if (node := _definition(name)) is not None]
    lines = sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in definitions)
    return Reach(modules=frozenset(name.module for name in reached), lines=lines)


@cache
def _modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sources("farm", "agents")
    }


@cache
def _definitions(module: str) -> dict[str, _Definition]:
    return {node.name: node for node in syntax_tree(_modules()[module]).body if isinstance(node, _Definition)}


def _definition(name: Name) -> _Definition | None:
    return _definitions(name.module).get(name.name) if name.name and name.module in _modules() else None


@cache
def _imports(module: str) -> dict[str, Name]:
    """Return what each imported name of a module stands for; imports within functions count."""
    imported = {}
    for node in ast.walk(syntax_tree(_modules()[module])):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] in ("farm", "agents")
        ):
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                target = Name(submodule) if submodule in _modules() else Name(node.module, alias.name)
                imported[alias.asname or alias.name] = target
    return imported


def _resolve(module: str, name: str) -> Name | None:
    """Return the definition or module that a name stands for, through packages that export it again."""
    if name in _definitions(module):
        return Name(module, name)
    target = _imports(module).get(name)
    if target is None or target.name is None or target.module not in _modules():
        return target
    return _resolve(target.module, target.name) or target


def _used_names(name: Name) -> Iterator[Name]:
    """Yield the definitions that a definition names."""
    definition = _definition(name)
    for node in ast.walk(definition) if definition else ():
        match node:
            case ast.Name(id=identifier):
                target = _resolve(name.module, identifier)
                if target is not None and target.name is not None:
                    yield target
            case ast.Attribute(value=ast.Name(id=identifier), attr=attribute):
                target = _resolve(name.module, identifier)
                if target is not None and target.name is None:
                    member = Name(target.module, attribute)
                    if _definition(member) is not None:
                        yield member
