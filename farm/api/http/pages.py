"""Query parameters of lists that come page by page."""

from datetime import datetime
from typing import Annotated

from fastapi import Depends, Query

from farm.api.context import Farm
from farm.api.http.authorization import Viewer
from farm.api.http.past_times import past_time
from farm.store.newest_first import ListFilter
from farm.wire.base import MAX_LIST_PAGE

#: Name of the last row that the client has; empty: none.
AfterName = Annotated[str, Query(max_length=256)]
ListPageSize = Annotated[int, Query(ge=1, le=MAX_LIST_PAGE)]


async def _list_filter(
    caller: Viewer,
    farm: Farm,
    since: datetime | None = None,
    name: str | None = Query(default=None, max_length=256),
    mine: bool = False,
) -> ListFilter:
    begin = past_time("since", since, now=farm.clock.now())
    return ListFilter(since=begin, name=name, person=caller.name if mine else None)


#: Those since a time, with a text in their name, or added by the caller.
Listed = Annotated[ListFilter, Depends(_list_filter)]
