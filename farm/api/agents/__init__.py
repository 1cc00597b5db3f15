"""What agents call all the time: the long poll, heartbeats, reports."""
