"""The attack of `make security`: fuzzed calls of every role, while others time their own requests."""
