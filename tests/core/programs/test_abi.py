"""Which program a phone runs."""

from farm.core.programs.abi import select_abi

PHONE = ("arm64-v8a", "armeabi-v7a", "armeabi")


def test_a_phone_runs_the_program_of_its_first_abi_that_has_one() -> None:
    assert select_abi(PHONE, ["armeabi-v7a", "arm64-v8a"]) == "arm64-v8a"
    assert select_abi(PHONE, ["x86_64", "armeabi-v7a"]) == "armeabi-v7a"


def test_a_script_is_taken_where_nothing_was_built_for_the_phone() -> None:
    assert select_abi(PHONE, ["any", "armeabi"]) == "armeabi"
    assert select_abi(PHONE, ["any", "x86_64"]) == "any"
    assert select_abi((), ["any"]) == "any"


def test_a_phone_without_a_program_runs_none() -> None:
    assert select_abi(PHONE, ["x86_64"]) is None
    assert select_abi((), ["x86_64"]) is None
