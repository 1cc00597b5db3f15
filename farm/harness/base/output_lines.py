"""What a program said, without what loggers put before each line.

Outputs come by many ways: from the program itself, TensorFlow Lite's own log (`INFO: `), LiteRT's,
ExecuTorch's, glog's and Abseil's, Python's, Apple's, logcat in its forms `brief`, `tag`, `process`, `thread`,
`time`, `threadtime`, `uid`, `epoch`, `monotonic`, columns of Eclipse and of Android Studio, through services
that write the time before each line, and through terminals that colour them.
"""

import re

_LEVEL = r"[VDIWEFA]"
#: A tag may have blanks inside, and is padded: at most what Android allows for one is gone through.
_TAG = r"[^\s:(\]][^:(\n]{0,60}?"
_DAY = r"(?:\d{4}-)?\d\d-\d\d"
_TIME = r"\d\d:\d\d:\d\d\.\d{3,9}"
#: Of a source file.
_PLACE = r"[\w./-]{1,200}\.\w{1,4}:\d{1,6}"
#: ExecuTorch's: `I 00:00:00.043703 executorch:executor_runner.cpp:379] text`.
_EXECUTORCH = re.compile(rf"{_LEVEL} {_TIME}\d{{0,9}} [\w./-]{{1,100}}:[\w./-]{{1,200}}:\d+\] ")
_PREFIXES = tuple(
    re.compile(pattern)
    for pattern in (
        # Quoted in a thread.
        r"(?:> ?){1,5}(?=\S|\s)",
        # Before all else, by what ran the program: `2024-07-02T11:20:31.402Z `, `[2024-07-02 11:20:31.402] `.
        rf"\d{{4}}-\d\d-\d\dT{_TIME}(?:Z|[+-]\d\d:?\d\d) ",
        rf"\[(?:{_DAY}[ T]\d\d:\d\d:\d\d(?:[.,]\d{{1,9}})?Z?|\s{{0,9}}\d{{1,9}}\.\d{{3,9}})\] ",
        # Apple's: `2024-07-02 11:20:31.402123+0200 Bench[812:4711] text`.
        rf"\d{{4}}-\d\d-\d\d {_TIME}[+-]\d{{4}} [\w .-]{{1,60}}\[\d+:\d+\] ",
        # threadtime: `08-13 17:35:52.069  1234  1250 I tflite  : text`; zone and user before the process,
        # seconds since 1970 or the start for the time; Studio of old has `1234-1250/app I/`.
        rf"(?:{_DAY} {_TIME}|\d{{1,11}}\.\d{{3,9}})(?:\s+[+-]\d{{4}})?(?:\s+[a-z0-9][\w.]{{0,60}})?"
        rf"\s+\d+\s+\d+ {_LEVEL} {_TAG}\s*: ?",
        rf"{_DAY} {_TIME}\s+\d+-\d+/\S+ {_LEVEL}/{_TAG}\s*: ?",
        # Posted with the process left out.
        rf"{_DAY} {_TIME} {_LEVEL} {_TAG}\s*: ?",
        # Studio's padded columns: `2023-04-05 12:00:00.123 19036-19036 tflite  com.example.app  I  text`.
        # Shorter ones have neither the day nor, in the compact view, anything but time and level.
        rf"(?:{_DAY} )?{_TIME}\s+\d+-\d+\s+\S.{{0,100}}?\s{_LEVEL}\s{{1,60}}(?=\S|$)",
        rf"{_TIME}\s+{_LEVEL}\s{{1,3}}(?=\S|$)",
        # time, brief and tag: `I/tflite  ( 1234): text`, `I tflite  : text`; Eclipse: a colon behind.
        rf"(?:{_DAY} {_TIME}:?\s+)?{_LEVEL}/{_TAG}\s*(?:\(\s*\d+\))?: ?",
        rf"{_LEVEL} {_TAG}\s*: (?=\S)",
        # thread: `I( 1234: 1250) text`, the second in hexadecimal where it is an old one.
        rf"{_LEVEL}\(\s*\d{{1,9}}:\s*(?:0x)?[0-9a-f]{{1,16}}\) ",
        rf"{_LEVEL} {_TAG}\s*:$",
        # Of TensorFlow Lite's own log, which other prefixes may stand before.
        r"(?:INFO|VERBOSE|WARN(?:ING)?|ERROR|FATAL): ",
        # Python's, and that of programs which put their level in brackets.
        r"(?:INFO|DEBUG|WARNING|ERROR):[\w.]{1,60}:",
        r"\[ ?(?:INFO|DEBUG|WARN(?:ING)?|ERROR) ?\] ",
        # glog and Abseil: `I0813 17:35:52.069112 1234 a.cc:78] text`; TensorFlow; LiteRT behind its level.
        rf"[IWEF](?:\d{{4}})?\d{{4}} \d\d:\d\d:\d{{2,10}}\.\d{{6}}\s+\d+ {_PLACE}\] ",
        rf"{_DAY} {_TIME}: {_LEVEL} {_PLACE}\] ",
        rf"\[{_PLACE}\] ",
        _EXECUTORCH.pattern,
    )
)
#: Most lines have none, and programs print hundreds of thousands.
_MAY_HAVE_ONE = re.compile(rf"\d+[-:.\d]|>|{_LEVEL}[ /(\d]|\[|INFO|DEBU|VERB|WARN|ERRO|FATA")
#: What colours a terminal's text.
_COLOURS = re.compile(r"\x1b\[[0-9;?]{0,20}[A-Za-z]")
#: logcat's `process` has the tag behind: `I( 1234) text  (tflite)`.
_PROCESS = re.compile(rf"{_LEVEL}\(\s*\d{{1,9}}\) (.*\S|)\s+\([^()]{{1,60}}\)$")


def without_colours(text: str) -> str:
    """A text without what terminals and loggers colour it with."""
    return _COLOURS.sub("", text) if "\x1b" in text else text


def plain_line(line: str) -> str:
    """A line without the prefixes of loggers; blanks at both ends are gone, too."""
    found = line.strip().lstrip("\ufeff")
    if _MAY_HAVE_ONE.match(found) is None:
        return found
    if (match := _EXECUTORCH.match(found)) is not None:
        return found[match.end() :].strip()
    if (match := _PROCESS.match(found)) is not None:
        return match[1].strip()
    for pattern in _PREFIXES:
        if (match := pattern.match(found)) is not None and match.end() > 0:
            found = found[match.end() :].strip()
            if _MAY_HAVE_ONE.match(found) is None:
                break
    return found


def plain_lines(text: str) -> list[str]:
    """Every line of a text that is not empty, without the prefixes of loggers."""
    lines = without_colours(text.replace("\0", "")).splitlines()
    plain = (plain_line(line) for line in lines if line)
    return [line for line in plain if line]
