"""What loggers put before lines: it goes, and says which process wrote what follows. Times are invented."""

import pytest

from farm.harness.base.log_lines import log_lines, own_lines
from farm.harness.base.output_lines import plain_line, plain_lines

TEXT = "mobilenet  min =    4.10  max =    4.90  avg =    4.35"
OF_LOGCAT = [
    "I/bench   ( 8123): ",
    "I( 8123: 8140) ",
    "I( 8123:0x1fcc) ",
    "07-02 11:20:31.402 I/bench   ( 8123): ",
    "07-02 11:20:31.402  8123  8140 I bench   : ",
    "07-02 11:20:31.402 shell  8123  8140 I bench   : ",
    "07-02 11:20:31.402  2000  8123  8140 I bench   : ",
    "07-02 11:20:31.402 u0_a214  8123  8140 I bench   : ",
    "2024-07-02 11:20:31.402117 +0200  2000  8123  8140 I bench   : ",
    "07-02 11:20:31.402117305  8123  8140 I bench   : ",
    "      1719912031.402  8123  8140 I bench   : ",
    "        913.402  8123  8140 I bench   : ",
    "07-02 11:20:31.402 8123-8140/? I/bench: ",
    "2024-07-02 11:20:31.402  8123-8140  bench                   org.example.bench            I  ",
]
OF_OTHERS = [
    "07-02 11:20:31.402 I bench         : ",
    "I0702 11:20:31.402117  8123 bench.cc:78] ",
    "I20240702 11:20:31.402117  8123 bench.cc:78] ",
    "I 00:00:00.402117 executorch:executor_runner.cpp:379] ",
    "I 00:00:00.402117042000000 executorch:executor_runner.cpp:379] ",
    "2024-07-02T11:20:31.4021173Z ",
    "2024-07-02T11:20:31.402+02:00 ",
    "[2024-07-02 11:20:31.402] ",
    "[2024-07-02 11:20:31,402] INFO: ",
    "[2024-07-02T11:20:31Z] ",
    "[  913.402117] ",
    "2024-07-02 11:20:31.402117+0200 Bench[8123:771] ",
    "INFO:root:",
    "[INFO] ",
    "[ ERROR ] ",
    "> ",
    "> > I 00:00:00.402117 executorch:executor_runner.cpp:379] ",
]


@pytest.mark.parametrize("prefix", OF_LOGCAT + OF_OTHERS)
@pytest.mark.parametrize("blanks", ["", "          "])
def test_what_a_logger_puts_before_a_line_goes(prefix: str, blanks: str) -> None:
    assert plain_line(f"{prefix}{blanks}{TEXT}") == TEXT


def test_logcats_form_process_has_the_tag_behind() -> None:
    assert plain_line(f"I( 8123)      {TEXT}  (bench)") == TEXT


@pytest.mark.parametrize(
    "line",
    [
        "[0 Adreno (TM) 642]  queueC=0[3]  queueG=0[3]  queueT=0[3]",
        "[ - ] net.mnn    max =    6.496 ms  min =    4.821 ms  avg =    5.192 ms",
        "[12.5] is no time",
        "1.5 2 3 is neither",
        "net  min =    4.10  max =    4.90  avg =    4.35",
    ],
)
def test_what_is_no_prefix_stays(line: str) -> None:
    assert plain_line(line) == line


def test_several_stand_before_one_another() -> None:
    text = f"2024-07-02T11:20:31.402Z 07-02 11:20:31.402  8123  8140 I bench   : INFO: {TEXT}\n"
    assert plain_lines(text) == [TEXT]


@pytest.mark.parametrize("prefix", [*OF_LOGCAT, "I( 8123) "])
def test_each_form_that_tells_the_process_tells_whose_a_line_is(prefix: str) -> None:
    other = prefix.replace("8123", "412")
    assert [line.pid for line in log_lines(f"{prefix}ours\n{other}theirs\n")] == [8123, 412]
    assert "theirs" not in own_lines(f"{prefix}ours\n{other}theirs\n", 8123)


def test_logcats_form_long_tells_it_in_a_line_above() -> None:
    log = "".join(
        f"[ 07-02 11:20:31.402  {user}{pid}: 8140 I/bench    ]\n{said}\nand more\n\n"
        for user, pid, said in (("", 8123, "ours"), ("", 412, "theirs"), ("2000: ", 8123, "ours again"))
    )
    found = [(line.text, line.pid) for line in log_lines(log)]
    assert [text for text, pid in found if pid == 8123] == ["ours", "and more", "ours again", "and more"]
    assert own_lines(log, 412) == "theirs\nand more"
