"""Changes in the history of series: what changed, since when, where and because of what; pure."""
