"""What `ctx keys` says and does, one file for each kind of it."""
