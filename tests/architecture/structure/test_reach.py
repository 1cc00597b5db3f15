"""The paths that matter most stay short: how much code each entry point leads to."""

from tests.architecture.structure.reach import reach

#: Entry point: at most so many modules, and so many lines of the definitions used in them.
BUDGETS: dict[str, tuple[int, int]] = {
    "farm.services.results.settle:settle_reports": (54, 2900),
    "farm.api.state.report_parser_pool:ReportParserPool": (87, 5400),
    "farm.services.agents.exchange.exchange:apply_request": (60, 3170),
    "farm.services.jobs.claim:claim_jobs": (35, 1190),
    "farm.services.matrices.submit:prepare_matrix": (36, 2480),
    "farm.services.matrices.submit:store_if_unchanged": (33, 1290),
}


def test_no_entry_point_leads_to_more_than_its_budget() -> None:
    reached = {entry: reach(entry) for entry in BUDGETS}
    over = {
        entry: (len(measured.modules), measured.lines)
        for entry, measured in reached.items()
        if len(measured.modules) > BUDGETS[entry][0] or measured.lines > BUDGETS[entry][1]
    }
    assert over == {}
