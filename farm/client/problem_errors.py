"""A problem document that came over HTTP, as the error of our tree that it stands for."""

from collections.abc import Iterator

from farm.core.errors import Blame, DeviceError, FarmError, FarmFault, HostError, InvalidInput
from farm.wire.base import Problem


class VariantError(FarmError):
    """A model file, or the harness running it, did what the farm calls by a name we do not know."""

    code = "variant.error"
    blame = Blame.VARIANT
    default_hint = "`farm variant list` shows what the farm knows of the file"


class ProblemError(Exception):
    """The cause of an error that came over HTTP: the problem document as it was sent."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


def error_of(problem: Problem) -> FarmError:
    """Return the error that a problem document describes, caused by a `ProblemError` that holds the document.

    A code this version does not know falls back to the class of its blame.
    """
    kind = error_class_by_code().get(problem.code) or _fallback(problem.blame)
    error = kind(problem.detail, hint=problem.hint)
    if isinstance(error, InvalidInput):
        error.places = problem.places
    error.__cause__ = ProblemError(problem)
    return error


def error_class_by_code() -> dict[str, type[FarmError]]:
    """Return every class of the error tree by its code on the wire."""
    return {kind.code: kind for kind in _walk(FarmError)}


def _walk(kind: type[FarmError]) -> Iterator[type[FarmError]]:
    # A class without a code of its own shares its parent's: the parent, met last, keeps it.
    for child in kind.__subclasses__():
        yield from _walk(child)
    yield kind


def _fallback(blame: str) -> type[FarmError]:
    fallbacks: dict[str, type[FarmError]] = {
        Blame.USER: InvalidInput,
        Blame.VARIANT: VariantError,
        Blame.DEVICE: DeviceError,
        Blame.HOST: HostError,
        Blame.FARM: FarmFault,
    }
    return fallbacks.get(blame, FarmFault)
