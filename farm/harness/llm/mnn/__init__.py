"""MNN's benchmark tool of language models."""
