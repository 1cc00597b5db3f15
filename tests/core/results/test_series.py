from typing import Any

import pytest

from farm.core.base.ids import DeviceId, Digest, is_digest
from farm.core.base.setting_values import non_default_settings
from farm.core.models.variant import Format, Precision, Recipe
from farm.core.results.series import series_digest

RECIPE = Recipe(precision=Precision.FLOAT32, format=Format.LITE)


def digest(**changed: Any) -> Digest:
    facts: dict[str, Any] = {
        "model": "mobilenet_v2",
        "recipe": RECIPE,
        "backend": "cpu",
        "harness": "speed_benchmark_torch",
        "settings": {"iter": 30, "warmup": 5},
        "defaults": {"iter": 10, "warmup": 5},
        "device_id": DeviceId("phone-1"),
    }
    return series_digest(**{**facts, **changed})


def test_a_series_is_named_by_a_digest() -> None:
    assert is_digest(digest())


def test_a_new_flag_at_its_default_does_not_break_a_series() -> None:
    grown = digest(
        settings={"iter": 30, "warmup": 5, "threads": 1}, defaults={"iter": 10, "warmup": 5, "threads": 1}
    )
    assert grown == digest()


def test_the_order_of_settings_does_not_matter() -> None:
    assert digest(settings={"warmup": 5, "iter": 30}) == digest()


def test_a_recipe_at_its_defaults_is_the_recipe_without_them() -> None:
    spelled_out = Recipe(
        precision=Precision.FLOAT32, format=Format.LITE, memory_format="contiguous", target="cpu"
    )
    assert digest(recipe=spelled_out) == digest()


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "resnet18"},
        {"recipe": Recipe(precision=Precision.INT8_CORE, format=Format.LITE)},
        {"recipe": Recipe(precision=Precision.FLOAT32, format=Format.LITE, memory_format="channels_last")},
        {"backend": "vulkan"},
        {"harness": "another"},
        {"settings": {"iter": 31, "warmup": 5}},
        {"device_id": DeviceId("phone-2")},
    ],
)
def test_anything_else_makes_another_series(changed: dict[str, Any]) -> None:
    assert digest(**changed) != digest()


def test_true_is_not_the_default_1() -> None:
    assert non_default_settings({"flag": True}, {"flag": 1}) == {"flag": True}
