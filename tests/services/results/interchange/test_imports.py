"""Results of others are kept once for each file, apart from everything that the farm compares."""

from datetime import timedelta

import pytest

from farm.core.errors import Conflict, InvalidInput, NotFound
from farm.database.tables import external_results, imports, metadata
from farm.database.transaction import bind_tx
from farm.services.results.history.latest_speedups import list_latest_speedups
from farm.services.results.interchange.imports import (
    external_result_views,
    import_views,
    keep_import,
    log_adapter,
    preview_import,
    read_import,
    withdraw_import,
)
from farm.store.newest_first import ListFilter
from farm.store.results.interchange.external_results import ExternalFilter
from farm.wire.documents.results.imports import ExternalResultView, ImportAnswer, ImportOutcome, ImportRequest
from tests.harness.external.samples import AI_HUB, FILES, json_bytes
from tests.support.farm.service_fixture import FarmRig

TWO = {"imports", "external_results"}


def request(name: str, content: bytes | None = None, **given: str) -> ImportRequest:
    return ImportRequest.model_construct(name=name, content=content or FILES[name], **given)


def imported(farm: FarmRig, asked: ImportRequest) -> ImportAnswer:
    keep = bind_tx(keep_import, now=farm.clock.now(), actor="user:ann")
    return farm.write(keep, read_import(asked, None))


def views(farm: FarmRig, **wanted: object) -> list[ExternalResultView]:
    return farm.read(external_result_views, ExternalFilter(**wanted), after=0, limit=1000)  # type: ignore[arg-type]


def counts(farm: FarmRig) -> dict[str, int]:
    names = [table.name for table in metadata.sorted_tables]
    return {name: farm.rows(f"SELECT count(*) AS n FROM {name}")[0]["n"] for name in names}


def test_a_file_of_each_format_is_kept_with_all_that_it_tells(farm: FarmRig) -> None:
    for name in FILES:
        answer = imported(farm, request(name))
        assert answer.outcome is ImportOutcome.IMPORTED
        assert [view.file for view in views(farm, import_id=answer.import_id)] == [name] * answer.results
    rate = views(farm, metric="pp64 rate")[0]
    assert (rate.value, rate.unit, rate.sample_count, rate.samples) == (640.5, "tokens/s", 2, "[641.0,640.0]")
    assert (rate.model, rate.device, rate.date) == ("tiny-q4.gguf", "Some CPU", "2026-05-01T10:00:00Z")
    assert (rate.imported_by, rate.imported_at, rate.withdrawn_at) == ("ann", farm.clock.now(), None)


def test_nothing_but_the_two_tables_and_the_event_log_changes(farm: FarmRig) -> None:
    farm.variant()
    farm.variant("int8-core")
    host = farm.healthy_host("virtual-1")
    farm.submit(rounds=3)
    host.run()
    speedups = farm.read(list_latest_speedups)
    before = counts(farm)
    for name in FILES:
        imported(farm, request(name, model="mobilenet_v2", device="virtual-1"))
    after = counts(farm)
    assert {name for name in after if after[name] != before[name]} == {*TWO, "events"}
    assert farm.read(list_latest_speedups) == speedups


def test_no_other_table_refers_to_them_and_they_refer_to_none() -> None:
    reached = {
        (table.name, key.column.table.name) for table in metadata.sorted_tables for key in table.foreign_keys
    }
    assert {pair for pair in reached if TWO & set(pair)} == {(external_results.name, imports.name)}


def test_the_same_bytes_are_kept_once_under_any_name(farm: FarmRig) -> None:
    first = imported(farm, request("ai_hub.json"))
    again = imported(farm, request("other.json", FILES["ai_hub.json"]))
    assert (again.outcome, again.import_id) == (ImportOutcome.DUPLICATE, first.import_id)
    assert len(views(farm)) == first.results
    read = read_import(request("ai_hub.json"), None)
    assert farm.read(preview_import, read).outcome is ImportOutcome.DUPLICATE


def test_a_preview_keeps_nothing(farm: FarmRig) -> None:
    before = counts(farm)
    answer = farm.read(preview_import, read_import(request("ai_hub.json"), None))
    assert (answer.outcome, answer.import_id, answer.results) == (ImportOutcome.IMPORTABLE, None, 3)
    assert counts(farm) == before


def test_what_was_withdrawn_is_shown_only_on_request_and_can_be_imported_again(farm: FarmRig) -> None:
    first = imported(farm, request("ai_hub.json"))
    assert first.import_id is not None
    withdraw = bind_tx(withdraw_import, now=farm.clock.now(), actor="user:ben")
    view = farm.write(withdraw, first.import_id, "another phone")
    assert (view.withdrawn_by, view.reason) == ("ben", "another phone")
    assert views(farm) == []
    assert len(views(farm, withdrawn=True)) == first.results
    with pytest.raises(Conflict, match="withdrawn by ben already"):
        farm.write(withdraw, first.import_id, "twice")
    with pytest.raises(NotFound):
        farm.write(withdraw, 99, "none")
    again = imported(farm, request("ai_hub.json", device="Phone A"))
    assert again.import_id != first.import_id
    assert {result.device for result in views(farm)} == {"Phone A"}
    both = [again.import_id, first.import_id]
    for which, found in (
        (ListFilter(), both),
        (ListFilter(since=farm.clock.now(), name="AI_HUB", person="ann"), both),
        (ListFilter(since=farm.clock.now() + timedelta(seconds=1)), []),
        (ListFilter(name="llama"), []),
        (ListFilter(person="ben"), []),
    ):
        assert [view.import_id for view in farm.read(import_views, which, limit=10)] == found
    assert [view.import_id for view in farm.read(import_views, ListFilter(), limit=1)] == both[:1]
    older = farm.read(import_views, ListFilter(), before=again.import_id, limit=10)
    assert [view.import_id for view in older] == both[1:]


def test_what_is_given_counts_where_the_file_does_not_tell(farm: FarmRig) -> None:
    untold = imported(farm, request("ai_hub.json", device="Phone A", model="net"))
    assert untold.notes == [
        "device Phone A: given at the import, the file does not tell it",
        "model net: given at the import, the file does not tell it",
    ]
    told = imported(farm, request("llama.json", device="Phone A"))
    assert told.notes == ["device Phone A: given at the import, used for none of the results"]
    assert {view.device for view in views(farm, import_id=told.import_id)} == {"Some CPU"}


def test_results_are_filtered_and_come_in_pages(farm: FarmRig) -> None:
    for name in ("llama.json", "ai_hub.json", "measurements.jsonl"):
        imported(farm, request(name))
    assert {view.tool for view in views(farm, tool="llama-bench")} == {"llama-bench"}
    assert {view.model for view in views(farm, model="org/Net")} == {"org/Net"}
    assert views(farm, device="Phone A", metric="load_time")[0].value == 200.0
    assert views(farm, model="no such") == []
    found, after = [], 0
    while page := farm.read(external_result_views, ExternalFilter(), after=after, limit=3):
        found += page
        after = page[-1].result_id
    assert found == views(farm)


def test_a_file_that_cannot_be_read_leaves_nothing(farm: FarmRig) -> None:
    before = counts(farm)
    bad = AI_HUB | {"execution_summary": {"estimated_inference_time": -5}}
    with pytest.raises(InvalidInput, match="-5 is not a measured value"):
        imported(farm, request("bad.json", json_bytes(bad)))
    with pytest.raises(InvalidInput, match="control characters"):
        imported(farm, request("ai_hub.json", device="a\x1b[0m"))
    assert counts(farm) == before


def test_an_adapter_is_that_of_the_farms_program_or_the_built_in_one(farm: FarmRig) -> None:
    assert farm.read(log_adapter, "benchmark_model").name == "benchmark_model"
    with pytest.raises(NotFound, match="there is no harness"):
        farm.read(log_adapter, "no_such_harness")
