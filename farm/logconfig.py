"""Log configuration: structlog to stderr or to a file, as text for a person or as JSON for a machine."""

import logging
import sys
import time
from collections.abc import Callable
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Literal

import structlog

LogFormat = Literal["auto", "text", "json"]
#: The size at which a log file is renamed, and the number of older ones that are kept.
MAX_LOG_BYTES, OLDER_LOGS = 10 * 1024**2, 5
#: The same message of a library is logged once in so long; the number of messages remembered.
_REPEAT_AFTER_S, _MESSAGES = 10.0, 1000


def configure_logging(
    *,
    form: LogFormat = "auto",
    file: Path | None = None,
    max_bytes: int = MAX_LOG_BYTES,
) -> None:
    """Send every event of the process to stderr, or to a file that is renamed at `max_bytes`.

    `auto` is text on a terminal, JSON elsewhere.

    Libraries that use the standard `logging` are logged from `warning` upwards, in the same format.
    """
    as_json = form == "json" or (form == "auto" and (file is not None or not sys.stderr.isatty()))
    shared = _shared_processors()
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
        logger_factory=structlog.stdlib.LoggerFactory(),
    )
    handler = logging.StreamHandler(sys.stderr) if file is None else _rotating_file(file, max_bytes)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *_rendering(as_json)],
        )
    )
    handler.addFilter(RepeatedLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    # Periodic work that lasts longer than its period is skipped once, as it should be.
    logging.getLogger("apscheduler").setLevel(logging.ERROR)
    for ours in ("farm", "agents", "__main__"):
        logging.getLogger(ours).setLevel(logging.DEBUG)


class RepeatedLines(logging.Filter):
    """Passes a library's message once in ten seconds: callers cause some, such as those of invalid HTTP.

    The next line of a message says how many there were in between. Events of our own all pass.
    """

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        """`clock_s` returns seconds that do not jump."""
        super().__init__()
        self._clock_s = clock_s
        self._line_by_message: dict[tuple[str, str], _Line] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is logged."""
        if isinstance(record.msg, dict):
            # structlog's: its events are counted, or limited, where they are logged.
            return True
        now_s, key = self._clock_s(), (record.name, str(record.msg))
        line = self._line_by_message.get(key)
        if line is not None and now_s - line.at_s < _REPEAT_AFTER_S:
            line.left_out += 1
            return False
        if line is None and len(self._line_by_message) >= _MESSAGES:
            self._line_by_message.clear()
        if line is not None and line.left_out:
            record.msg, record.args = f"{record.getMessage()} ({line.left_out} more since the last)", None
        self._line_by_message[key] = _Line(now_s)
        return True


class _Line:
    """When a message was last logged, and how often it was not since then."""

    def __init__(self, at_s: float) -> None:
        self.at_s = at_s
        self.left_out = 0


def _rotating_file(file: Path, max_bytes: int) -> logging.Handler:
    file.parent.mkdir(parents=True, exist_ok=True)
    return RotatingFileHandler(file, maxBytes=max_bytes, backupCount=OLDER_LOGS, encoding="utf-8")


def _shared_processors() -> list[structlog.typing.Processor]:
    return [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True, key="at"),
    ]


def _rendering(as_json: bool) -> list[structlog.typing.Processor]:
    # Local variables stay out of tracebacks: tokens live in them.
    if as_json:
        frames = structlog.tracebacks.ExceptionDictTransformer(show_locals=False)
        return [
            structlog.processors.ExceptionRenderer(frames),
            structlog.processors.JSONRenderer(sort_keys=True),
        ]
    plain = structlog.dev.plain_traceback
    return [
        _quote_unprintable,
        structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain),
    ]


def _quote_unprintable(
    logger: object, method: str, event: structlog.typing.EventDict
) -> structlog.typing.EventDict:
    """Write texts with control characters, which a terminal would obey, as Python literals."""
    for key, value in event.items():
        if isinstance(value, str) and not value.isprintable():
            event[key] = repr(value)
    return event
