"""The values that definitions of generic harnesses are made of, each checked where it stands."""

import re
import shlex
from typing import Annotated, Literal

from pydantic import AfterValidator, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from farm.core.base.json_path import json_path
from farm.core.base.safe_regex import pattern_problem
from farm.core.programs.time_unit import time_unit

_FLAG_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
DECLARED: Literal["declared"] = "declared"


def _no_problem(problem: str | None) -> None:
    if problem is not None:
        raise PydanticCustomError("definition_value", "{problem}", {"problem": problem})


def _number_pattern(text: str) -> str:
    _no_problem(pattern_problem(text, groups=1))
    return text


def _output_pattern(text: str) -> str:
    _no_problem(None if text == DECLARED else pattern_problem(text))
    return text


def _path(text: str) -> str:
    try:
        json_path(text)
    except ValueError as error:
        _no_problem(str(error))
    return text


def _time_unit(text: str) -> str:
    try:
        time_unit(text)
    except ValueError as error:
        _no_problem(str(error))
    return text


def _flag_name(text: str) -> str:
    is_name = _FLAG_NAME.fullmatch(text)
    _no_problem(None if is_name else f"`{text[:80]}` is no flag's name: letters, digits and _, 64 at most")
    return text


def _name(text: str) -> str:
    is_name = _NAME.fullmatch(text)
    _no_problem(
        None if is_name else f"`{text[:80]}` is no name: letters, digits, `.`, `_` and `-`, 64 at most"
    )
    return text


def _words(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return shlex.split(value)
    except ValueError as error:
        raise PydanticCustomError("definition_value", "a quotation has no end") from error


NumberPattern = Annotated[str, AfterValidator(_number_pattern)]
OutputPattern = Annotated[str, AfterValidator(_output_pattern)]
Path = Annotated[str, AfterValidator(_path)]
Text = Annotated[str, Field(max_length=500)]
Word = Annotated[str, Field(max_length=1000)]
Words = Annotated[tuple[Word, ...], BeforeValidator(_words), Field(max_length=200, strict=False)]
#: As matrices and placeholders can spell it.
FlagName = Annotated[str, AfterValidator(_flag_name)]
Name = Annotated[str, AfterValidator(_name)]
Unit = Annotated[str, Field(min_length=1, max_length=32)]
TimeUnitName = Annotated[Unit, AfterValidator(_time_unit)]
