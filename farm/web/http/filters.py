"""Filters that most lists have: texts as people type them, read one way for all pages and their CSV."""

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query

from farm.api.http.authorization import Viewer
from farm.core.operations.role import Caller
from farm.presentation.text import past_moment
from farm.store.matrices.search import MatrixFilter, matrices_of
from farm.store.newest_first import ListFilter

ShortText = Annotated[str, Query(max_length=128)]
LabelText = Annotated[str, Query(max_length=256)]
TimeText = Annotated[str, Query(max_length=40)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TypedFilter:
    """The filters by name, time and person, as an address has them; empty ones do not restrict."""

    name: str
    since: str
    mine: bool
    caller: Caller

    @property
    def begin(self) -> datetime | None:
        """Return the beginning that `since` means.

        Raises:
            InvalidInput: it means no time.
        """
        return past_moment(self.since or None, option="since")

    @property
    def which(self) -> ListFilter:
        """Return the filter of a list of what people add."""
        person = self.caller.name if self.mine else None
        return ListFilter(since=self.begin, name=self.name or None, person=person)

    @property
    def of_matrices(self) -> MatrixFilter | None:
        """Return the filter of the matrices of that name and person, at any time; None: all matrices."""
        return matrices_of(name=self.name, person=self.caller.actor if self.mine else None)


async def _typed_filter(
    caller: Viewer, name: LabelText = "", since: TimeText = "", mine: bool = False
) -> TypedFilter:
    return TypedFilter(name=name, since=since, mine=mine, caller=caller)


Typed = Annotated[TypedFilter, Depends(_typed_filter)]
