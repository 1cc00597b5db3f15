"""The host machine: files, locks, processes, kernel log, disk."""
