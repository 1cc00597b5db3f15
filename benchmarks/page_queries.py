"""Statements of a page, run again for their time: by the driver alone, and by SQLAlchemy as the page does."""

import time
from typing import Any

import sqlalchemy as sa


class Queries:
    """The statements of a request, which are run again for their time, with all of their rows."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._statements: list[tuple[str, Any]] = []
        #: As the page has built them, before SQLAlchemy makes SQL of them.
        self._built: list[tuple[Any, Any]] = []
        sa.event.listen(engine, "before_cursor_execute", self._note)
        sa.event.listen(engine, "before_execute", self._note_built)

    def reset(self) -> None:
        """Forget the statements."""
        self._statements.clear()
        self._built.clear()

    def __len__(self) -> int:
        return len(self._statements)

    def seconds_as_run(self) -> tuple[float, float]:
        """Return the time that the statements take by SQLAlchemy, as in the page, and the CPU time."""
        built = list(self._built)
        with self._engine.connect() as connection:
            # A connection of its own begins a transaction.
            connection.execute(sa.text("SELECT 1")).all()
            began_s, cpu_began_s = time.perf_counter(), time.thread_time()
            for statement, parameters in built:
                connection.execute(statement, parameters).all()
            return time.perf_counter() - began_s, time.thread_time() - cpu_began_s

    def seconds(self) -> tuple[float, float]:
        """Return the time that the statements take in turn, and the CPU time."""
        statements = list(self._statements)
        raw = self._engine.raw_connection()
        try:
            cursor = raw.cursor()
            began_s, cpu_began_s = time.perf_counter(), time.thread_time()
            for statement, parameters in statements:
                cursor.execute(statement, parameters)
                if cursor.description is not None:
                    cursor.fetchall()
            return time.perf_counter() - began_s, time.thread_time() - cpu_began_s
        finally:
            raw.rollback()
            raw.close()

    def _note(self, _: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        self._statements.append((statement, parameters))

    def _note_built(self, _: object, statement: Any, many: Any, one: Any, __: object) -> None:
        self._built.append((statement, many or one))
