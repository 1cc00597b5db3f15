"""Pages of what others measured: files with who and why, their results, and the ways to them."""

import csv
import io

from tests.web.conftest import HOSTILE, PageFarm, parsed, words_of
from tests.web.questions.reading import read_page


def test_the_list_names_each_file_with_its_digest_person_and_reasons(pages: PageFarm) -> None:
    imports = pages.http.get("/api/v1/imports").json()
    answer = pages.http.get("/imports")
    page = read_page(answer.text)
    assert [row[0] for row in page.tables[0][1:]] == ["3", "2", "1"]
    for file, row in zip(imports, page.tables[0][1:], strict=True):
        assert file["name"] in row[1]
        assert file["digest"][:12] in row[1]
        assert row[5] == "ann"
        assert all(note in row[4] for note in file["notes"][:3])
    assert "[1] is left out: it reports a run that failed" in words_of(answer)
    assert f"withdrawn by ben: of another phone {HOSTILE}" in "".join(parsed(answer.text).text)

    assert not read_page(pages.http.get("/imports?name=no-such-file").text).tables
    assert [row[0] for row in read_page(pages.http.get("/imports?before=3").text).tables[0][1:]] == ["2", "1"]


def test_an_import_has_its_digest_and_every_result_in_the_units_of_the_file(pages: PageFarm) -> None:
    (third, second, first) = pages.http.get("/api/v1/imports").json()
    results = pages.http.get("/api/v1/external-results", params={"import_id": second["import_id"]}).json()
    page = read_page(pages.http.get("/imports/2").text)
    assert page.facts["SHA-256 of the file"] == second["digest"]
    assert page.facts["imported"].endswith("by ann")
    assert [row[4] for row in page.tables[0][1:]] == [result["metric"] for result in results]
    values = [f"{result['value']:.6g} {result['unit']}" for result in results]
    assert [row[5] for row in page.tables[0][1:]] == values
    withdrawn = words_of(pages.http.get("/imports/3"))
    assert "Withdrawn by ben" in withdrawn
    # They are shown there, and nowhere else unless they are asked for.
    assert len(read_page(pages.http.get("/imports/3").text).tables[0]) == third["results"] + 1
    everywhere = read_page(pages.http.get("/imports/results").text).column("import")
    assert set(everywhere) == {"1", "2"}
    asked = read_page(pages.http.get("/imports/results?withdrawn=true").text).column("import")
    assert set(asked) == {"1", "2", "3 withdrawn"}
    assert first["results"] == everywhere.count("1")


def test_results_are_found_by_their_model_and_as_csv(pages: PageFarm) -> None:
    page = read_page(pages.http.get("/imports/results?model=mobilenet_v2").text)
    assert set(page.column("model")) == {"mobilenet_v2"}
    answer = pages.http.get("/imports/results.csv?model=mobilenet_v2")
    rows = list(csv.DictReader(io.StringIO(answer.text)))
    assert [row["metric"] for row in rows] == page.column("metric")
    assert {row["import_id"] for row in rows} == {"2"}
    nothing = pages.http.get("/imports/results?model=vgg")
    assert "Fewer filters show more" in words_of(nothing)


def test_the_form_keeps_the_import_whose_results_are_shown(pages: PageFarm) -> None:
    html = pages.http.get("/imports/results?import_id=2").text
    assert '<input type="hidden" name="import_id" value="2">' in html
    assert 'of <a href="/imports/2">import 2</a>' in html
    assert "import_id" not in pages.http.get("/imports/results").text


def test_pages_of_a_model_and_of_a_device_lead_to_what_others_measured(pages: PageFarm) -> None:
    of_model = 'href="/imports/results?model=mobilenet_v2"'
    for path in ("/cells/2", "/history?model=mobilenet_v2", "/speedups?model=mobilenet_v2"):
        assert of_model in pages.http.get(path).text, path
    assert "/imports/results" not in pages.http.get("/history").text
    assert 'href="/imports/results?device=virtual-1"' in pages.http.get("/devices/virtual-1").text
    assert "/imports/results" not in pages.http.get("/devices/virtual-2").text


def test_an_import_that_is_not_there_is_a_page_that_says_so(pages: PageFarm) -> None:
    answer = pages.http.get("/imports/99")
    assert answer.status_code == 404
    assert "there is no import 99" in words_of(answer)
    assert "farm import list" in words_of(answer)
