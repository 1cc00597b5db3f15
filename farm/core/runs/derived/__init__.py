"""What the farm derives from a run besides its time: latency over time, energy, generations."""
