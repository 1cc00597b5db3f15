"""Problems in a matrix or definition: place, message and the name that was probably meant."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from typing import TypeVar

from farm.core.errors import InvalidInput, MatrixInvalid

InvalidT = TypeVar("InvalidT", bound=InvalidInput)

_NOT_DIGITS = re.compile(r"\D+")
#: By difflib's ratio: twice the letters in common over all letters of both.
_SIMILARITY, _OTHER_START = 0.65, 0.75
#: A hint lists at most this many names.
_NAMES_SHOWN = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SpecProblem:
    """One thing wrong at one place of a matrix, or of another document."""

    #: Keys and list positions, from the root.
    path: tuple[str | int, ...] = ()
    message: str
    hint: str = ""
    #: Name of the root in messages.
    root: str = "matrix"

    @property
    def where(self) -> str:
        """Return the place as people write it: `exclude[0].format`."""
        text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in self.path)
        return text.removeprefix(".") or self.root


def closest_name(word: str, names: Iterable[str]) -> str | None:
    """Return the name that was probably meant, if any.

    A suggestion must be likelier right than wrong. Slips seldom change the first letter, so a name with
    another one must be closer: `gpu` is no slip of `cpu`. Names that differ in their numbers are different
    things: `float16` and `float32`.
    """
    folded = word.casefold()
    digits = _NOT_DIGITS.sub("", folded)
    name_by_folded = {name.casefold(): name for name in sorted(set(names))}
    alike = [name for name in name_by_folded if _NOT_DIGITS.sub("", name) == digits]
    for name in get_close_matches(folded, alike, cutoff=_SIMILARITY):
        if name[:1] == folded[:1] or SequenceMatcher(None, folded, name).ratio() >= _OTHER_START:
            return name_by_folded[name]
    return None


def name_hint(word: str, known_names: Iterable[str]) -> str:
    """Return the known name that was probably meant, or else all known names."""
    names = sorted(set(known_names))
    if close := closest_name(word, names):
        return f"did you mean `{close}`?"
    if not names:
        return ""
    more = ", ..." if len(names) > _NAMES_SHOWN else ""
    return f"known here: {', '.join(names[:_NAMES_SHOWN])}{more}"


def matrix_invalid(problems: Sequence[SpecProblem], lines: Sequence[int | None] = ()) -> MatrixInvalid:
    """Return one error for all problems; `lines` are those of the file, one for each problem, where known."""
    return invalid_document(MatrixInvalid, problems, lines)


def invalid_document(
    kind: type[InvalidT], problems: Sequence[SpecProblem], lines: Sequence[int | None] = ()
) -> InvalidT:
    """Return an error like `matrix_invalid` for another kind of document."""
    numbers = lines or [None] * len(problems)
    texts = [
        f"{problem.where}{f' (line {line})' if line else ''}: {problem.message}"
        for problem, line in zip(problems, numbers, strict=True)
    ]
    message = texts[0] if len(texts) == 1 else "\n".join([f"{len(texts)} problems", *texts])
    error = kind(message, hint=_hints(problems) or None)
    error.places = tuple(problem.path for problem in problems)
    return error


def _hints(problems: Sequence[SpecProblem]) -> str:
    if len(problems) == 1:
        return problems[0].hint
    return "\n".join(f"{problem.where}: {problem.hint}" for problem in problems if problem.hint)


def unknown_harness(name: str, known_names: Iterable[str]) -> MatrixInvalid:
    """Return the error for a matrix that names a harness which the farm does not have."""
    hint = name_hint(name, known_names) or "the farm has no harness"
    return matrix_invalid([SpecProblem(path=("harness",), message=f"no harness `{name}`", hint=hint)])
