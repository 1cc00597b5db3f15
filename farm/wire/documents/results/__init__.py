"""Documents of results: cells, placements, explanations, reparsing."""
