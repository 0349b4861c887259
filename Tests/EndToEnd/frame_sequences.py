"""Frames of animations for comparisons, as lists of images with their durations in ms."""


def merged(frames: list) -> list:
    """Frames with equal ones in sequence made one, except short ones."""
    result = []
    for image, duration in frames:
        if result and duration > 10 and result[-1][1] > 10 and result[-1][0].tobytes() == image.tobytes():
            result[-1] = (image, result[-1][1] + duration)
        else:
            result.append((image, duration))
    return result
