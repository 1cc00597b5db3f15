"""ExecuTorch's runner of language models."""
