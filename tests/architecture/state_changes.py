"""Finds statements that change a state where nobody writes the event, by the syntax of the farm's sources.

A statement on a table's state (its insert, its delete, an update of a state column or of columns that only
run time knows) is told when its function writes an event: itself, or by a function of its module that does
nothing but that. Where it does not, every function that uses it has to, up to wherever that leads.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

#: By table, what of a row is a state; tables that are not named have none.
STATE_COLUMNS: Mapping[str, frozenset[str]] = {
    "matrices": frozenset(),
    "lazy_expansions": frozenset({"cancelled_at"}),
    "jobs": frozenset({"state", "outcome"}),
    "attempts": frozenset({"state", "outcome"}),
    "hosts": frozenset({"state"}),
    "sessions": frozenset({"state"}),
    "incidents": frozenset({"ended_at"}),
    "alarms": frozenset({"cleared_at"}),
    "devices": frozenset({"presence", "health", "admin", "reserved_by", "reserved_until"}),
    "device_actions": frozenset({"finished_at"}),
    "join_tokens": frozenset({"used_at", "used_by", "expires_at"}),
    "access_tokens": frozenset({"revoked_at"}),
    "artifacts": frozenset({"expired_at"}),
    "evidence": frozenset({"expired_at"}),
    "leader_leases": frozenset({"holder"}),
    "database_epochs": frozenset({"epoch"}),
}
#: A row of these is there before anything happens to it: a file that was sent, a report that came.
_NO_EVENT_BY_BEING = {"artifacts", "evidence"}
#: And of these, one goes when all has happened that its making told of: the last job of a device was queued.
_NO_EVENT_BY_GOING = {"lazy_expansions"}
_VERBS = {"insert", "update", "delete"}

Function = tuple[str, str]
"""A module and the name of a function in it."""


@dataclass
class Module:
    """What one file defines and uses."""

    name: str
    #: Local names of tables, of modules of ours, of functions of other modules.
    tables: dict[str, str] = field(default_factory=dict)
    modules: dict[str, str] = field(default_factory=dict)
    functions: dict[str, Function] = field(default_factory=dict)
    bodies: dict[str, ast.AST] = field(default_factory=dict)
    #: Statements that are built once, by the name of their constant.
    constants: dict[str, ast.AST] = field(default_factory=dict)


def silent_changes(sources: Mapping[str, str]) -> list[str]:
    """The functions that change a state without an event, as `module.function: table`.

    Args:
        sources: texts by the module's dotted name.
    """
    modules = {name: _module(name, text) for name, text in sources.items()}
    recorders = {name for name in modules["farm.store.operations.events"].bodies if name.startswith("record")}
    changes, noters, users = _facts(modules, {("farm.store.operations.events", name) for name in recorders})

    def is_told(function: Function, seen: frozenset[Function] = frozenset()) -> bool:
        if function in noters:
            return True
        by = users.get(function, set()) - seen - {function}
        return bool(by) and all(is_told(user, seen | {function}) for user in by)

    return sorted(
        f"{module}.{name}: {table}"
        for (module, name), tables in changes.items()
        for table in tables
        if not is_told((module, name))
    )


def _facts(
    modules: Mapping[str, Module], recorders: set[Function]
) -> tuple[dict[Function, set[str]], set[Function], dict[Function, set[Function]]]:
    """Which functions change which tables, which write events, and who uses whom."""
    changes: dict[Function, set[str]] = {}
    uses: dict[Function, set[Function]] = {}
    for module in modules.values():
        for name, body in module.bodies.items():
            if found := set(_changed_tables(module, body)):
                changes[module.name, name] = found
            uses[module.name, name] = set(_used(module, body))
    noters = {function for function, used in uses.items() if used & recorders}
    # A function that only writes events stands for those of its module that call it.
    plain = noters - changes.keys()
    noters |= {each for each, used in uses.items() if any(n in plain and n[0] == each[0] for n in used)}
    users: dict[Function, set[Function]] = {}
    for function, used in uses.items():
        for each in used:
            users.setdefault(each, set()).add(function)
    return changes, noters, users


def _module(name: str, text: str) -> Module:
    module = Module(name)
    for node in ast.parse(text).body:
        match node:
            case ast.ImportFrom(module=str(source)):
                _import(module, source, node.names)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                module.bodies[node.name] = node
            case ast.ClassDef():
                methods = (
                    each for each in node.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)
                )
                module.bodies |= {f"{node.name}.{method.name}": method for method in methods}
            case ast.Assign(targets=[ast.Name(id=constant)]):
                module.constants[constant] = node.value
    return module


def _import(module: Module, source: str, names: Sequence[ast.alias]) -> None:
    for alias in names:
        local = alias.asname or alias.name
        if source.startswith("farm.database.tables"):
            module.tables[local] = alias.name
        elif source.startswith("farm"):
            module.modules[local] = f"{source}.{alias.name}"
            module.functions[local] = (source, alias.name)


def _used(module: Module, body: ast.AST) -> Iterator[Function]:
    for node in ast.walk(body):
        match node:
            case ast.Name(id=name) if name in module.bodies:
                yield module.name, name
            case ast.Name(id=name) if name in module.functions:
                yield module.functions[name]
            case ast.Attribute(value=ast.Name(id=owner), attr=name) if owner in module.modules:
                yield module.modules[owner], name


def _changed_tables(module: Module, body: ast.AST) -> Iterator[str]:
    yield from _changed_in(module, body)
    for node in ast.walk(body):
        if isinstance(node, ast.Name) and node.id in module.constants:
            yield from _changed_in(module, module.constants[node.id])


def _changed_in(module: Module, body: ast.AST) -> Iterator[str]:
    parents = {child: node for node in ast.walk(body) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(body):
        if (found := _statement(module, node)) is None:
            continue
        table, verb = found
        if table in STATE_COLUMNS and _is_change(table, verb, _columns(node, parents)):
            yield table


def _statement(module: Module, node: ast.AST) -> tuple[str, str] | None:
    """The table and the verb of `jobs.update()` or `sa.update(jobs)`."""
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=verb)) if (
            verb in _VERBS and name in module.tables
        ):
            return module.tables[name], verb
        case ast.Call(func=ast.Attribute(attr=verb), args=[ast.Name(id=name), *_]) if (
            verb in _VERBS and name in module.tables
        ):
            return module.tables[name], verb
        case _:
            return None


def _is_change(table: str, verb: str, columns: frozenset[str] | None) -> bool:
    if verb == "insert":
        return table not in _NO_EVENT_BY_BEING
    if verb == "delete":
        return table not in _NO_EVENT_BY_GOING
    if columns is None:
        return True
    return bool(columns & STATE_COLUMNS[table])


def _columns(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> frozenset[str] | None:
    """What the chain's `.values(...)` sets; None where only run time knows."""
    found: set[str] | None = None
    while isinstance(dot := parents.get(node), ast.Attribute):
        call = parents.get(dot)
        if not isinstance(call, ast.Call):
            break
        if dot.attr == "values":
            said = _keys(call)
            if said is None:
                return None
            found = (found or set()) | said
        node = call
    return None if found is None else frozenset(found)


def _keys(call: ast.Call) -> set[str] | None:
    keys: set[str] = set()
    for keyword in call.keywords:
        if keyword.arg is None:
            return None
        keys.add(keyword.arg)
    for argument in call.args:
        if not isinstance(argument, ast.Dict):
            return None
        for key in argument.keys:
            if not (isinstance(key, ast.Constant) and isinstance(key.value, str)):
                return None
            keys.add(key.value)
    return keys
