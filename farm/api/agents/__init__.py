"""The frequent calls of agents: the long poll, heartbeats, reports."""
