"""Labels as people write them: cleaned, split, compared with classes, and as tags."""
