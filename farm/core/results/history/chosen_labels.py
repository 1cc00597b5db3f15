"""The comparisons that a person chooses by words of their labels."""

from collections.abc import Iterable, Sequence

from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput, NotFound


def chosen_labels(text: str, labels: Iterable[str]) -> frozenset[str]:
    """Return the labels that a text means: the one that it is, or else those that hold all of its words."""
    known = {*labels}
    exact = {label for label in known if label.casefold() == text.casefold()}
    words = text.casefold().split()
    found = exact or {label for label in known if all(word in label.casefold() for word in words)}
    return frozenset(found) if words else frozenset()


def check_chosen(side: str, text: str, labels: Iterable[str]) -> frozenset[str]:
    """Return the labels that a text means.

    Args:
        side: `baseline` or `candidate`, for the error.
        text: what was given.
        labels: those that there are.

    Raises:
        NotFound: it means none of them.
    """
    known = sorted({*labels})
    found = chosen_labels(text, known)
    if not found:
        raise NotFound(f"no {side} `{text}`", hint=name_hint(text, known) or "nothing was compared yet")
    return found


def check_one_baseline(text: str, labels: Sequence[str]) -> None:
    """Refuse a text that means several baselines.

    Raises:
        InvalidInput: it does.
    """
    if len(labels) > 1:
        named = ", ".join(f"`{label}`" for label in sorted(labels))
        raise InvalidInput(f"baseline `{text}` may be {named}", hint="say more of its label")
