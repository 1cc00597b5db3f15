"""Diagnosis of a machine: probes that read facts, and pure checks of them."""
