"""Data sets: what the rows and entries of files hold."""
