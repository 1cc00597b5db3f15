"""ExecuTorch's executor_runner."""
