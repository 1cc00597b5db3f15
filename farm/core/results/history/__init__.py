"""History: what a session showed of each series."""
