"""What several commands share: options, checks, output and reports."""
