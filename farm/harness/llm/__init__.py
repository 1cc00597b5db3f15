"""Benchmark tools of language models, a folder for each runtime."""
