"""Rejected cells of matrices with their reasons: written once, read page by page."""

from collections.abc import Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from farm.core.base.ids import DeviceId, MatrixId
from farm.database.tables import rejections

#: The number of rejections in a row, and in a page.
PAGE = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """A rejected cell, which gets no jobs."""

    #: Its index among the rejections of its matrix, from 0.
    index: int
    #: None if no device is the cause.
    device_id: DeviceId | None
    label: str
    reason: str


def add_rejections(
    connection: Connection, matrix_id: MatrixId, rejected: Sequence[tuple[DeviceId | None, str, str]]
) -> None:
    """Store device, label and reason of each rejection."""
    rows = [
        {
            "matrix_id": matrix_id,
            "first_index": first,
            "cells": [list(cell) for cell in rejected[first : first + PAGE]],
        }
        for first in range(0, len(rejected), PAGE)
    ]
    if rows:
        connection.execute(rejections.insert(), rows)


def page_of_rejections(connection: Connection, matrix_id: MatrixId, *, after: int) -> list[Rejection]:
    """Return the rejections with an index above `after`, up to the end of a row; none at the end."""
    first = (after + 1) // PAGE * PAGE
    query = sa.select(rejections.c.cells).where(
        rejections.c.matrix_id == matrix_id, rejections.c.first_index == first
    )
    cells = connection.execute(query).scalar_one_or_none() or []
    return [
        Rejection(index=index, device_id=device_id, label=label, reason=reason)
        for index, (device_id, label, reason) in enumerate(cells, start=first)
        if index > after
    ]
