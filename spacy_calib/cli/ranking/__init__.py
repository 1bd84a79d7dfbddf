"""What `calib rank` is made of."""
