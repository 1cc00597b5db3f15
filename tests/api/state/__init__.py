"""Tests of what the API keeps in memory, and of the processes that it starts."""
