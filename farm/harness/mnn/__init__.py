"""MNN's benchmark.out."""
