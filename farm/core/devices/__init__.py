"""Devices and hosts: hardware, condition, controls, administration."""
