"""What adapters share: their interface, tools that run one model, log lines, accelerators."""
