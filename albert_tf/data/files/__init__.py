"""Files: their bytes, lines, rows and columns."""
