"""What changed is named so that it can be asked for."""

from collections.abc import Mapping

import pytest

from farm.core.results.history.change_text import scope_text


@pytest.mark.parametrize(
    ("scope", "text"),
    [
        (
            {"model": "mobilenet_v2", "variant": "int8-core", "harness": "torch", "device": "phone-1"},
            "mobilenet_v2 int8-core on phone-1",
        ),
        # A program without a model: its cells are called by their backend.
        ({"harness": "kernel.sh", "variant": "cpu", "device": "phone-1"}, "kernel.sh cpu on phone-1"),
        ({"harness": "kernel.sh", "device": "phone-1"}, "everything of kernel.sh on phone-1"),
        ({"device": "phone-1"}, "everything on phone-1"),
        ({"variant": "int8"}, "int8"),
    ],
)
def test_a_scope_names_the_model_or_else_the_harness(scope: Mapping[str, str], text: str) -> None:
    assert scope_text(scope) == text
