"""The comparisons that a person chooses by words of their labels."""

from collections.abc import Iterable
from dataclasses import dataclass

from farm.core.base.spec_errors import name_hint
from farm.core.errors import InvalidInput, NotFound


@dataclass(frozen=True, slots=True, kw_only=True)
class PairChoice:
    """Words of the labels of the pairs that are asked for; without a baseline, candidates have their own."""

    baseline: str | None = None
    candidate: str | None = None

    def chosen(self, labels: Iterable[str], *, on_device: Iterable[str] = ()) -> "ChosenLabels":
        """Return the labels of both sides.

        Args:
            labels: all that there are.
            on_device: those of the one device that is asked for: a text that means some of them means no
                others, although another device has a cell with the whole text as its label.

        Raises:
            NotFound: a text means none of the labels that there are.
        """
        known, own = {*labels}, {*on_device}

        def side(name: str, text: str | None) -> frozenset[str] | None:
            if text is None:
                return None
            return chosen_labels(text, own) or check_chosen(name, text, known)

        return ChosenLabels(
            baseline=side("baseline", self.baseline),
            candidate=side("candidate", self.candidate),
            baseline_text=self.baseline or "",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenLabels:
    """The labels of both sides; None: all, and as baseline the one that was planned."""

    baseline: frozenset[str] | None
    candidate: frozenset[str] | None
    baseline_text: str

    @property
    def listed(self) -> frozenset[str] | None:
        """Return the labels of either side; None: all."""
        if self.baseline is None or self.candidate is None:
            return None
        return self.baseline | self.candidate

    def is_candidate(self, label: str) -> bool:
        """Tell whether a cell of this label is compared."""
        return self.candidate is None or label in self.candidate

    def are_of(self, baseline: str, candidate: str) -> bool:
        """Tell whether a planned pair of these labels is chosen."""
        return (self.baseline is None or baseline in self.baseline) and self.is_candidate(candidate)

    def baselines_among(self, labels: Iterable[str]) -> list[str]:
        """Return the labels that may be the baseline among those of one device and model, sorted."""
        return sorted({*labels} & (self.baseline or frozenset()))

    def baseline_among(self, labels: Iterable[str]) -> str | None:
        """Return the label of the baseline among those of one device and model; None if there is none.

        Raises:
            InvalidInput: there are several.
        """
        found = self.baselines_among(labels)
        if len(found) > 1:
            named = ", ".join(f"`{label}`" for label in found)
            raise InvalidInput(
                f"baseline `{self.baseline_text}` may be {named}", hint="say more of its label"
            )
        return found[0] if found else None


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
