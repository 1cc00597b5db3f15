"""Virtual phones: the device side of adb, one process per device."""
