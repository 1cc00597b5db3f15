"""Sources of variants."""
