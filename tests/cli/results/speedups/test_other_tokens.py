"""Language models with other numbers of tokens are not compared without a word."""

from farm.cli.results.speedups.pivot import pivot_tables
from farm.cli.results.speedups.table import speedup_table
from tests.support.sample_views import speedup_view


def test_the_verdict_and_a_note_say_that_the_tokens_are_others() -> None:
    view = speedup_view(
        tokens_differ=True, tokens="64 generated tokens timed behind 0 tokens", baseline_tokens="others"
    )
    text = " ".join(speedup_table([view], width=120).plain.split())
    assert "faster, other tokens" in text
    caution = "caution: int8-core: its tokens are other than the baseline's, or may be:"
    assert f"{caution} 64 generated tokens timed behind 0 tokens; the baseline: others" in text


def test_a_pivot_which_has_marks_for_verdicts_says_it_below() -> None:
    view = speedup_view(
        tokens_differ=True, tokens="64 tokens", baseline_tokens="128 tokens", clocks_differ=True
    )
    text = " ".join(pivot_tables([view], width=100).plain.split())
    assert "its clock covers other work than the baseline's, or may" in text
    assert "its tokens are other than the baseline's, or may be: 64 tokens; the baseline: 128 tokens" in text
    assert "caution" not in pivot_tables([speedup_view()], width=100).plain


def test_where_they_are_the_same_nothing_is_said() -> None:
    assert "tokens" not in speedup_table([speedup_view()], width=120).plain
