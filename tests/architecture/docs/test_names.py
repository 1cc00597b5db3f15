"""Pages name files, folders, headings and make targets that exist."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PAGES = sorted(
    str(path.relative_to(ROOT))
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tests").rglob("*.md"))
)
#: Pages for people who change the code; what they put in backticks is checked, too.
FOR_CONTRIBUTORS = ("CONTRIBUTING.md", "README.md", "docs/architecture.md")
#: Where a path of a page may begin: pages leave out what the sentence says.
STARTS = (ROOT, ROOT / "farm", ROOT / "farm" / "services")
_LINK = re.compile(r"\]\((?!https?:)([^)\s]+)\)")
_PATH = re.compile(r"(?<![\w./-])((?:farm|agents|tests|docs|examples|services|store|core)/[\w./<>-]*[\w>/])")
_FILE = re.compile(r"`([\w-]+\.(?:py|sh))`")
_TARGET = re.compile(r"\bmake ([a-z][a-z-]*)\b(?=[ `\n])")


def anchors(page: Path) -> set[str]:
    """Return the anchors that a page's headings have on the web."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_file_and_a_heading(name: str) -> None:
    page = ROOT / name
    for link in _LINK.findall(page.read_text(encoding="utf-8")):
        file, _, anchor = link.partition("#")
        target = page.parent / file if file else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("name", FOR_CONTRIBUTORS)
def test_every_file_that_a_page_for_contributors_names_is_there(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    for path in _PATH.findall(text):
        pattern = re.sub(r"<\w+>", "*", path).removesuffix("/")
        places = (start.glob(end) for start in STARTS for end in (pattern, f"{pattern}.py"))
        assert any(map(any, places)) or "/X/" in path, path
    for file in _FILE.findall(text):
        assert any(any((ROOT / top).rglob(file)) for top in ("farm", "agents", "benchfarm", "tests")), file


@pytest.mark.parametrize("name", FOR_CONTRIBUTORS)
def test_every_make_target_that_a_page_for_contributors_names_is_one(name: str) -> None:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(_TARGET.findall((ROOT / name).read_text(encoding="utf-8"))) <= set(targets)


def test_the_extras_of_the_page_for_laptops_are_those_for_users() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    named = set(
        re.findall(
            r"^\| `benchfarm\[(\w+)\]`",
            (ROOT / "docs" / "laptop.md").read_text(encoding="utf-8"),
            re.MULTILINE,
        )
    )
    (everything,) = extras["all"]
    included = set(everything.removeprefix("benchfarm[").removesuffix("]").split(","))
    # torch has a build of its own for each machine.
    assert included - {"torch"} == named - {"all", "agent", "statistics"}
    assert named <= set(extras)
