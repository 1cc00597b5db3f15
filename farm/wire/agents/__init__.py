"""The protocol between agents and the farm."""
