"""Virtual phones: the device side of adb, each a process of its own."""
