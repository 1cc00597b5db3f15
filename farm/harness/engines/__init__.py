"""Inference engines whose adapter is one module: ncnn, MNN, and the runtime of TVM."""
