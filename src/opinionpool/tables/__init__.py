"""Reading of files and data frames of any shape as `Forecasts`."""
