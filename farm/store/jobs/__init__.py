"""Rows of jobs, attempts and queues."""
