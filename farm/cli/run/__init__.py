"""Commands that measure what their arguments name: run, compare, bisect, rerun."""
