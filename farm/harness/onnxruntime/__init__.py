"""ONNX Runtime's onnxruntime_perf_test."""
