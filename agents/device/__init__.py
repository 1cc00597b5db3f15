"""Operations on a device: facts, conditions, files, runs, clean-up.

Each of them raises DeviceError when the device goes away or is too slow; docstrings name other causes.
"""
