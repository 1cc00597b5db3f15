"""`farm up --no-agent`, that stands still within a settle where a test asks for it, to be killed there.

The file `halt.json` in the data folder names the point: {"statement": 5} is before the fifth statement of a
settle, or before its commit where it has fewer; {"statement": null} when the transaction is on disk and
nobody was told. `halted.json` appears when the farm stands there; nothing goes on from then.
"""

import argparse
import json
import threading
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.pool import Pool

from farm.config import FarmConfig
from farm.daemon import UpOptions, run
from farm.logconfig import configure_logging

HALT, HALTED = "halt.json", "halted.json"
#: Of all that writes, only a settle looks at evidence; it does so right after it found its attempt.
_MARK = "FROM evidence"


class SettleWatch(threading.local):
    """Counts the statements of the thread's transaction, once it turns out to be a settle."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._writes = False
        self._number = 0

    def on_begin(self, connection: Connection) -> None:
        self._writes, self._number = connection.get_execution_options().get("farm_writes", False), 0

    def before_statement(self, _connection: Connection, _cursor: object, statement: str, *_more: Any) -> None:
        if self._number or (self._writes and _MARK in statement):
            self._number += 1
            if self._wanted() == self._number:
                self._halt(statement)

    def before_commit(self, _connection: Connection) -> None:
        if self._number and (self._wanted() or 0) > self._number:
            self._halt("COMMIT")

    def on_checkin(self, *_more: object) -> None:
        if self._number and self._wanted() is None:
            self._halt("after COMMIT")
        self._number = 0

    def _wanted(self) -> int | None:
        """Before which statement to halt, 0 for nowhere, None for after the commit."""
        try:
            statement: int | None = json.loads((self._folder / HALT).read_text())["statement"]
        except FileNotFoundError:
            return 0
        return statement

    def _halt(self, seen: str) -> None:
        draft = self._folder / f"{HALTED}.new"
        draft.write_text(json.dumps({"after": self._number, "at": seen}))
        draft.replace(self._folder / HALTED)
        threading.Event().wait()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    watch = SettleWatch(arguments.data)
    event.listen(Engine, "begin", watch.on_begin)
    event.listen(Engine, "before_cursor_execute", watch.before_statement)
    event.listen(Engine, "commit", watch.before_commit)
    event.listen(Pool, "checkin", watch.on_checkin)
    configure_logging()
    run(UpOptions(config=FarmConfig(data_dir=arguments.data, port=arguments.port), agent=False))


if __name__ == "__main__":
    main()
