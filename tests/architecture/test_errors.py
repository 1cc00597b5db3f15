"""The error tree is complete, drawn as it is, and every class says what is needed of it."""

import re
from collections.abc import Iterator

import pytest

from farm.core import errors
from farm.core.errors import Blame, FarmError


def classes(kind: type[FarmError] = FarmError) -> Iterator[type[FarmError]]:
    """The tree's classes that are defined in the module of errors, in the order they were."""
    yield kind
    for child in kind.__subclasses__():
        if child.__module__ == errors.__name__:
            yield from classes(child)


ALL = list(classes())
DRAWN = re.compile(r"^([│├└─ ]*)(\w+) *(?:blame (\w+)|([\w.]+))?$", re.MULTILINE)


def drawn() -> list[tuple[int, str, str | None, str | None]]:
    """The tree at the top of the module: depth, name, blame and code as drawn."""
    lines = DRAWN.findall((errors.__doc__ or "").partition("\n\n")[2].partition("\n\n")[0])
    return [(len(lead) // 4, name, blame or None, code or None) for lead, name, blame, code in lines]


def drawn_paths() -> Iterator[tuple[str, ...]]:
    """Yield the path from the root to each class as drawn; the order of siblings is free."""
    path: list[str] = []
    for depth, name, _, _ in drawn():
        path = [*path[:depth], name]
        yield tuple(path)


def test_the_tree_is_drawn_as_it_is() -> None:
    lineages = [[parent.__name__ for parent in kind.__mro__ if issubclass(parent, FarmError)] for kind in ALL]
    assert sorted(drawn_paths()) == sorted(tuple(reversed(lineage)) for lineage in lineages)


def test_the_codes_and_blames_are_drawn_as_they_are() -> None:
    for _, name, blame, code in drawn():
        kind: type[FarmError] = getattr(errors, name)
        assert code is None or kind.code == code
        assert blame is None or kind.blame == blame


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_an_error_says_what_it_is_who_is_to_blame_and_what_to_do(kind: type[FarmError]) -> None:
    message = (kind.__doc__ or "").strip().splitlines()[0]
    assert message.endswith("."), f"{kind.__name__}: {message!r}"
    assert "__doc__" in vars(kind)
    assert isinstance(kind.blame, Blame)
    assert isinstance(kind.transient, bool)
    assert kind.default_hint
    assert not kind.default_hint.endswith(".")
    assert re.fullmatch(r"[a-z_]+(\.[a-z_]+)?", kind.code)


def test_a_code_names_one_class() -> None:
    codes = [vars(kind)["code"] for kind in ALL if "code" in vars(kind)]
    assert len(codes) == len(set(codes))


def test_every_leaf_has_a_code_of_its_own() -> None:
    leaves = [kind for kind in ALL if not kind.__subclasses__()]
    assert [kind.__name__ for kind in leaves if "code" not in vars(kind)] == []
