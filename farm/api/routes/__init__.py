"""The routes of people and scripts, one file a domain."""
