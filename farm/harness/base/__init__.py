"""The interface of adapters, and what they share: tools that run one model, log lines, accelerators."""
