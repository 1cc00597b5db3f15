"""A class name means one thing."""

from collections import defaultdict

from tests.architecture.sources import classes, name_of

#: Names that two modules may define, each with its reason.
ALLOWED: dict[str, str] = {}


def test_no_class_name_is_defined_in_two_modules() -> None:
    modules_by_name: defaultdict[str, set[str]] = defaultdict(set)
    for path, node in classes("farm", "agents", "benchfarm"):
        modules_by_name[node.name].add(name_of(path))
    repeated = {name: sorted(modules) for name, modules in modules_by_name.items() if len(modules) > 1}
    assert {name: modules for name, modules in repeated.items() if name not in ALLOWED} == {}
    assert set(ALLOWED) <= set(repeated), "remove names that are defined once"
