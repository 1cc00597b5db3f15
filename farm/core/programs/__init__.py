"""Harness programs: bundles, binaries, definitions, selection."""
