"""Query parameters of lists that come page by page."""

from typing import Annotated

from fastapi import Query

from farm.wire.base import MAX_LIST_PAGE

#: Name of the last row that the client has; empty: none.
AfterName = Annotated[str, Query(max_length=256)]
ListPageSize = Annotated[int, Query(ge=1, le=MAX_LIST_PAGE)]
