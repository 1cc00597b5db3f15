"""`farm up --virtual 1` with its embedded agent, that notes every request its server gets over a socket.

Each line of `requests.txt` in the data folder is method and path. The server's own trace tells of them, so
nothing of the farm is different here.
"""

import argparse
import logging
from pathlib import Path

from uvicorn.logging import TRACE_LOG_LEVEL

from farm.config import FarmConfig
from farm.daemon import UpOptions, run
from farm.logconfig import configure_logging

REQUESTS = "requests.txt"


class RequestNotes(logging.Handler):
    """Writes down where requests begin; records of anything else are passed over."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path

    def emit(self, record: logging.LogRecord) -> None:
        scope = record.args[-1] if isinstance(record.args, tuple) and record.args else None
        if isinstance(scope, dict) and scope.get("type") == "http":
            with self._path.open("a") as notes:
                notes.write(f"{scope['method']} {scope['path']}\n")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    configure_logging()
    for name in ("uvicorn.error", "uvicorn.asgi"):
        logging.getLogger(name).setLevel(TRACE_LOG_LEVEL)
    traced = logging.getLogger("uvicorn.asgi")
    traced.propagate = False
    traced.addHandler(RequestNotes(arguments.data / REQUESTS))
    run(UpOptions(config=FarmConfig(data_dir=arguments.data, port=arguments.port), virtual=1))


if __name__ == "__main__":
    main()
