"""ONNX Runtime GenAI's benchmark tool."""
