"""One run: plan, evidence, measurement, quality."""
