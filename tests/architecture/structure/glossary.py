"""Words that the project once used for things that have a name in the field, and where they still stand.

`python -m tests.architecture.structure.glossary [WORD …]` lists each place.
"""

import re
import sys
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from pathlib import Path

from tests.architecture.sources import ROOT, name_of, sources

#: Word (a regular expression over whole words, in lower case) -> the field's word.
GLOSSARY: dict[str, str] = {
    "ailments?|ailing": "failure mode",
    "all the same": "still",
    "anew": "again",
    "any ?body|whoever": "anyone",
    "befall(?:s|en)?": "happens to",
    "blueprints?": "job template",
    "by itself": "automatically",
    "caretakers?": "healer",
    "climb(?:s|ed|ing)?": "recovery episode",
    "comes? to be": "is created",
    "cut line|held port": "network fault",
    "dut(?:y|ies)": "leader lease",
    "earlier li(?:fe|ves)|later life|next life|life of the agent": "agent restart",
    "errands?": "device action",
    "ever more rarely": "with increasing back-off",
    "farms? leave|farm s leave|needs leave|its leave": "approval, permission",
    "figures?": "summaries, numbers",
    "first turn|last turn|round turn": "virtual time",
    "for good": "permanently",
    "foreign(?! keys?\\b| key| pre chain)": "external, unsupported, imported",
    "gives? back|given back|gave back|giving back": "release, return",
    "golden": "reference",
    "hangs? on|hanging on": "is attached to",
    "heard of": "last report of",
    "heed(?:s|ed|ing)?": "apply",
    "in hand": "in progress, active",
    "in vain": "no effect",
    "judgements?": "verdict, assessment",
    "keepers?": "supervisor",
    "kept login": "credentials",
    "(?<!memory \\?)killers?": "poison job",
    "lack(?:s|ing)": "missing",
    "lately": "recently",
    "leftovers?": "pending clean-ups",
    "level accepted": "re-baselined",
    "looked at": "inspected",
    "meanwhile": "in between",
    "mend(?:s|ed|ing)?": "fix",
    "nobody|no body": "no one",
    "of before": "previous",
    "outlast(?:s|ed|ing)?": "start-up retry",
    "patience|patients?": "time-out; device in recovery",
    "private files": "secret files",
    "put(?:s|ting)? off": "defer",
    "quiet lines?|still quiet|nothing new": "unchanged",
    "reckoning|ledger|logbook": "checker, oracle, log",
    "reference bands?|(?<!matrix )bands?": "reference range",
    "re ?reads?|rereading": "reparse",
    "roll calls?": "heartbeats",
    "same work": "equivalent cells, recurrence",
    "shel(?:f|ves)(?! ?\\d)": "device settings; sent reports",
    "sieves?": "pre-filter",
    "sightings?": "device reports",
    "some ?body": "someone",
    "stand ?ins?": "fake",
    "standings": "report contexts; states",
    "stor(?:y|ies)": "event history",
    "strand(?:s|ed|ing)?": "abandon, tear down",
    "tells? apart|told apart|told from": "distinguish, detect",
    "the word of": "the report of",
    "troubles?": "failure, fault, incident",
    "twins?": "reference, port, duplicate",
    "unfold(?:s|ed|ing|ings)?": "expand lazily",
    "(?:for )?want of": "out of",
}

_PAGES = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """A place where a word of the glossary stands."""

    file: str
    line: int
    #: A key of the glossary.
    word: str
    text: str


def occurrences() -> Iterator[Occurrence]:
    """Yield each place in the sources and pages where a word of the glossary stands."""
    for path in [
        *sources("farm", "agents", "benchfarm"),
        *sorted((ROOT / "docs").rglob("*.md")),
        *_root_pages(),
    ]:
        yield from _in_file(path)


def words_in(text: str) -> str:
    """Return a text in lower case with its identifiers and wrapped lines as words between single spaces."""
    parted = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", text)
    return re.sub(r"[\s_\-#*`']+", " ", parted).lower()


def _root_pages() -> list[Path]:
    return [ROOT / name for name in _PAGES if (ROOT / name).exists()]


def _in_file(path: Path) -> Iterator[Occurrence]:
    lines = path.read_text(encoding="utf-8").splitlines()
    # A phrase may be wrapped: lines are joined, and it stands where it begins.
    parts = [f"{part} " if (part := words_in(line).strip()) else "" for line in lines]
    starts = list(accumulate(map(len, parts), initial=0))
    for match in _pattern().finditer("".join(parts)):
        index = bisect_right(starts, match.start()) - 1
        yield Occurrence(file=name_of(path), line=index + 1, word=_word_of(match), text=lines[index].strip())


@cache
def _pattern() -> re.Pattern[str]:
    words = "|".join(f"(?P<w{index}>{word})" for index, word in enumerate(GLOSSARY))
    return re.compile(rf"\b(?:{words})\b")


def _word_of(match: re.Match[str]) -> str:
    return list(GLOSSARY)[int(str(match.lastgroup)[1:])]


def main() -> None:
    """Print each occurrence, of all words or of those whose expression contains an argument."""
    wanted = sys.argv[1:]
    for place in occurrences():
        if not wanted or any(part in place.word for part in wanted):
            sys.stdout.write(f"{place.file}:{place.line}: [{place.word}] {place.text}\n")


if __name__ == "__main__":
    main()
