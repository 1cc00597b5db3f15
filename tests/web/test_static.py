"""What browsers load: the vendored files are those of their packages, small, and with licences."""

import hashlib
import json

import httpx

from farm.web.http.rendering import STATIC_FOLDER
from tests.web.conftest import PageFarm

#: Of all scripts together; a page loads a part of them.
MAX_SCRIPT_BYTES = 110_000
VENDOR = STATIC_FOLDER / "vendor"


def test_vendored_files_are_those_of_the_manifest() -> None:
    manifest = json.loads((VENDOR / "vendor.json").read_text())
    files = {entry["file"]: entry["sha256"] for entry in manifest}
    assert {path.name for path in VENDOR.iterdir()} == {*files, "vendor.json"}
    for name, digest in files.items():
        assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest
    for package in {entry["package"] for entry in manifest}:
        assert any(entry["package"] == package and entry["source"] == "LICENSE" for entry in manifest)


def test_all_scripts_together_are_small() -> None:
    assert sum(path.stat().st_size for path in STATIC_FOLDER.rglob("*.js")) <= MAX_SCRIPT_BYTES


def test_static_files_are_served_with_a_type_that_browsers_accept(pages: PageFarm) -> None:
    def kind(path: str) -> str:
        answer: httpx.Response = pages.http.get(path)
        assert answer.status_code == 200
        return answer.headers["content-type"].split(";")[0]

    assert kind("/static/style.css") == "text/css"
    assert kind("/static/pages.js") == "text/javascript"
    assert kind("/static/vendor/htmx.min.js") == "text/javascript"
    assert kind("/static/icon.svg") == "image/svg+xml"
    assert pages.http.get("/static/../pages.py").status_code == 404
    assert pages.http.get("/static/%2e%2e/app.py").status_code == 404
