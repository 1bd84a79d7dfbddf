"""The component `calib`: its fit, its scorer and its saved form."""
