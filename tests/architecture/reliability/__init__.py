"""What docs/reliability.md is made of: promises, scenarios, the tests that are marked with them, mutants."""
