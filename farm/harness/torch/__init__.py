"""PyTorch Mobile's speed_benchmark_torch."""
