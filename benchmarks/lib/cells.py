"""Text of measured values in tables."""


def shown(value):
    """Return a measured value as text, a list separated by commas."""
    if value is None:
        return "-"
    if isinstance(value, list):
        return ", ".join(map(shown, value))
    return f"{value:.3g}" if isinstance(value, float) else str(value)
