"""Tables as CSV, for spreadsheets and frames: the numbers in full, in the columns of the API."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from typing import TypeVar

from fastapi.responses import StreamingResponse

from farm.presentation.csv_text import csv_table

DocumentT = TypeVar("DocumentT")


async def csv_response(
    name: str,
    load: Callable[[DocumentT | None], Awaitable[Sequence[DocumentT]]],
    lines: Callable[[Iterable[DocumentT]], Iterable[str]],
) -> StreamingResponse:
    """Return documents as a file of CSV, page by page as it is read.

    Args:
        name: of the file, without its ending.
        load: a page behind a document, None for the first; empty at the end. Its errors are raised here for
            the first page only: later ones end the connection, which browsers and programs report.
        lines: those of some documents, with a header.
    """
    first = await load(None)

    async def text() -> AsyncIterator[str]:
        page, is_first = first, True
        while is_first or page:
            own = list(lines(page))
            for line in own if is_first else own[1:]:
                yield f"{line}\r\n"
            is_first = False
            page = await load(page[-1]) if page else page

    return StreamingResponse(
        text(),
        media_type="text/csv; charset=utf-8",
        headers={
            "Content-Disposition": f'attachment; filename="{name}.csv"',
            "X-Content-Type-Options": "nosniff",
            "Cache-Control": "private, no-cache",
        },
    )


async def csv_table_response(
    name: str, documents: Sequence[DocumentT], lines: Callable[[Iterable[DocumentT]], Iterable[str]]
) -> StreamingResponse:
    """Return documents that are one page as a file of CSV; arguments are as those of `csv_response`."""

    async def page(last: DocumentT | None) -> Sequence[DocumentT]:
        return documents if last is None else ()

    return await csv_response(name, page, lines)


def columns_of(*names: str) -> Callable[[Iterable[object]], Iterable[str]]:
    """Return the function that writes these fields of documents."""
    return lambda documents: csv_table(names, documents)
