"""Numbers of steps of a training: per interval, and per call of the device."""

from albert_tf_lite.errors import AlbertError

# Steps between two entries of the history, unless others are given.
LONGEST_INTERVAL, SHORTEST_INTERVAL = 1000, 100


def interval_of(steps: int, interval: int | None, steps_per_call: int) -> int:
    """Return the steps per interval, and check that they divide those of the training.

    The default is the largest number from 100 to 1,000 that divides the steps. If there
    is none, or at most 1,000 steps, the training is one interval.

    Args:
        steps: int, of the training.
        interval: optional int, as given.
        steps_per_call: int, which divide the interval.

    Raises:
        AlbertError: if one of the numbers is no multiple of the next.
    """
    if interval is None:
        longest = min(steps, LONGEST_INTERVAL)
        fitting = [
            number
            for number in range(SHORTEST_INTERVAL, longest + 1)
            if steps % number == 0 and number % steps_per_call == 0
        ]
        interval = fitting[-1] if fitting else steps
    if min(steps, interval) < 1 or steps % interval or interval % steps_per_call:
        raise AlbertError(
            "`steps` must be a multiple of `interval`, and that of `steps_per_call`. "
            f"Received: steps={steps}, interval={interval}, "
            f"steps_per_call={steps_per_call}"
        )
    return interval
