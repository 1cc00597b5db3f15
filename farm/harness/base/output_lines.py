"""Program output without the prefixes of loggers.

Output arrives by many ways: from the program itself, TensorFlow Lite's own log (`INFO: `), LiteRT's,
ExecuTorch's, glog's and Abseil's, Python's, Apple's, logcat in its forms `brief`, `tag`, `process`, `thread`,
`time`, `threadtime`, `uid`, `epoch`, `monotonic`, columns of Eclipse and of Android Studio, through services
that write the time before each line, and through terminals that colour it.
"""

import re

_LEVEL = r"[VDIWEFA]"
#: A tag may contain blanks, and is padded: at most Android's limit for a tag is searched.
_TAG = r"[^\s:(\]][^:(\n]{0,60}?"
_DAY = r"(?:\d{4}-)?\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d\.\d{3,9}"
#: A place in a source file.
_PLACE = r"[\w./-]{1,200}\.\w{1,4}:\d{1,6}"
#: ExecuTorch's: `I 00:00:00.043703 executorch:executor_runner.cpp:379] text`.
_EXECUTORCH = re.compile(rf"{_LEVEL} {_TIME}\d{{0,9}} [\w./-]{{1,100}}:[\w./-]{{1,200}}:\d+\] ")
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        # Quoted in a mail or forum thread.
        r"(?:> ?){1,5}(?=\S|\s)",
        # Services write the time before all else: `2024-07-02T11:20:31.402Z `, `[2024-07-02 11:20:31.402] `.
        rf"\d{{4}}-\d\d-\d\dT{_TIME}(?:Z|[+-]\d\d:?\d\d) ",
        rf"\[(?:{_DAY}[ T]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?Z?|\s{{0,9}}\d{{1,9}}\.\d{{3,9}})\] ",
        # Apple's: `2024-07-02 11:20:31.402123+0200 Bench[812:4711] text`.
        rf"\d{{4}}-\d\d-\d\d {_TIME}[+-]\d{{4}} [\w .-]{{1,60}}\[\d+:\d+\] ",
        # threadtime: `08-13 17:35:52.069  1234  1250 I tflite  : text`; zone and user before the process,
        # seconds since 1970 or the start for the time; old versions of Studio have `1234-1250/app I/`.
        rf"(?:{_DAY} {_TIME}|\d{{1,11}}\.\d{{3,9}})(?:\s+[+-]\d{{4}})?(?:\s+[a-z0-9][\w.]{{0,60}})?"
        rf"\s+\d+\s+\d+ {_LEVEL} {_TAG}\s*: ?",
        rf"{_DAY} {_TIME}\s+\d+-\d+/\S+ {_LEVEL}/{_TAG}\s*: ?",
        # Quoted without the process.
        rf"{_DAY} {_TIME} {_LEVEL} {_TAG}\s*: ?",
        # Studio's padded columns: `2023-04-05 12:00:00.123 19036-19036 tflite  com.example.app  I  text`.
        # Shorter ones have no day, or in the compact view only time and level.
        rf"(?:{_DAY} )?{_TIME}\s+\d+-\d+\s+\S.{{0,100}}?\s{_LEVEL}\s{{1,60}}(?=\S|$)",
        rf"{_TIME}\s+{_LEVEL}\s{{1,3}}(?=\S|$)",
        # time, brief and tag: `I/tflite  ( 1234): text`, `I tflite  : text`; Eclipse adds a colon.
        rf"(?:{_DAY} {_TIME}:?\s+)?{_LEVEL}/{_TAG}\s*(?:\(\s*\d+\))?: ?",
        rf"{_LEVEL} {_TAG}\s*: (?=\S)",
        # thread: `I( 1234: 1250) text`, the second number in hexadecimal in old versions.
        rf"{_LEVEL}\(\s*\d{{1,9}}:\s*(?:0x)?[0-9a-f]{{1,16}}\) ",
        rf"{_LEVEL} {_TAG}\s*:$",
        # TensorFlow Lite's own log; other prefixes may stand before it.
        r"(?:INFO|VERBOSE|WARN(?:ING)?|ERROR|FATAL): ",
        # Python's, and that of programs which write their level in brackets.
        r"(?:INFO|DEBUG|WARNING|ERROR):[\w.]{1,60}:",
        r"\[ ?(?:INFO|DEBUG|WARN(?:ING)?|ERROR) ?\] ",
        # glog and Abseil: `I0813 17:35:52.069112 1234 a.cc:78] text`; TensorFlow; LiteRT after its level.
        rf"[IWEF](?:\d{{4}})?\d{{4}} \d\d:\d\d:\d{{2,10}}\.\d{{6}}\s+\d+ {_PLACE}\] ",
        rf"{_DAY} {_TIME}: {_LEVEL} {_PLACE}\] ",
        rf"\[{_PLACE}\] ",
        _EXECUTORCH.pattern,
    )
)
#: Most lines have no prefix, and programs print hundreds of thousands of them.
_MAY_HAVE_ONE = re.compile(rf"\d+[-:.\d]|>|{_LEVEL}[ /(\d]|\[|INFO|DEBU|VERB|WARN|ERRO|FATA")
#: Escape sequences that colour a terminal's text.
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
#: logcat's `process` has the tag at the end: `I( 1234) text  (tflite)`.
_PROCESS = re.compile(rf"{_LEVEL}\(\s*\d{{1,9}}\) (.*\S|)\s+\([^()]{{1,60}}\)$")


def without_colours(text: str) -> str:
    """Return a text without the escape sequences of colours."""
    return _COLOURS.sub("", text) if "\x1b" in text else text


def plain_line(line: str) -> str:
    """Return a line without the prefixes of loggers and without blanks at both ends."""
    text = line.strip().lstrip("\ufeff")
    if _MAY_HAVE_ONE.match(text) is None:
        return text
    if (match := _EXECUTORCH.match(text)) is not None:
        return text[match.end() :].strip()
    if (match := _PROCESS.match(text)) is not None:
        return match[1].strip()
    for pattern in _PREFIXES:
        if (match := pattern.match(text)) is not None and match.end() > 0:
            text = text[match.end() :].strip()
            if _MAY_HAVE_ONE.match(text) is None:
                break
    return text


def plain_lines(text: str) -> list[str]:
    """Return every line that is not empty, without the prefixes of loggers."""
    lines = without_colours(text.replace("\0", "")).splitlines()
    plain = (plain_line(line) for line in lines if line)
    return [line for line in plain if line]
