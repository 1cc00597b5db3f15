"""Results: settling reports, speedups, placements, reparsing."""
