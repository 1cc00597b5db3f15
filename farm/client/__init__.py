"""The farm over HTTP, for people, scripts and agents."""
