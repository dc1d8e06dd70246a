"""Running a method: the driver, its history, why it stopped, and several runs at a time."""
