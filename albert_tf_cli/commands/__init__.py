"""The commands of `albert-tf`, one module each."""
