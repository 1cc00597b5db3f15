"""Prefixes of logcat and glog, where a device's output was saved in a log."""

import re

#: Android's levels. A tag may contain blanks; glog names the line of a source file.
_LEVEL = r"[VDIWEFA]"
_TAG = r"[^\s:(\n][^:(\n]{0,60}?"
_DAY = r"(?:\d{4}-)?\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d\.\d{3,9}"
_NUMBER = r" +\d{1,9}"
_PREFIX = re.compile(
    "|".join(
        (
            # threadtime; on request with zone and user, by name or number; or seconds since 1970.
            rf"(?:{_DAY} {_TIME}|\d{{9,11}}\.\d{{3,9}})(?: +[+-]\d{{4}})?"
            rf"(?: +[a-z]\w{{0,30}}|{_NUMBER}(?={_NUMBER}{_NUMBER} ))?"
            rf"{_NUMBER}{_NUMBER} {_LEVEL} {_TAG} *: ?",
            # time, and brief: `I/dumpsys ( 1234): `.
            rf"(?:{_DAY} {_TIME} +)?{_LEVEL}/{_TAG} *\( *\d{{1,9}}\): ?",
            rf"[IWEF]\d{{4}} {_TIME} +\d{{1,9}} [\w./-]{{1,100}}:\d{{1,6}}\] ?",
        )
    ),
    re.ASCII,
)


def without_log_prefix(line: str) -> str:
    """Return the line without its prefix; leading blanks stay."""
    match = _PREFIX.match(line)
    return line if match is None else line[match.end() :]
