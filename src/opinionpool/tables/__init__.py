"""Files and data frames to forecasts: the one place where they enter."""
