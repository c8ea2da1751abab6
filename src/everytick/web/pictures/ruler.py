"""The ruler above the sign-in: ticks that have been, now, and ticks to come."""

from functools import cache

from markupsafe import Markup

_WIDTH, _STEP, _NOW, _LONG_EVERY = 384, 8, 256, 48


@cache
def ruler() -> Markup:
    """Return the picture. It says nothing, so it is hidden from readers."""
    ticks = Markup("").join(_tick(x) for x in range(0, _WIDTH + 1, _STEP))
    dot = Markup('<circle class="n" cx="{}" cy="6" r="4"/>').format(_NOW)
    return Markup('<svg class="ruler" viewBox="0 0 384 64" height="64" aria-hidden="true">{}{}</svg>').format(
        ticks, dot
    )


def _tick(x: int) -> Markup:
    top = 10 if x == _NOW else 34 if x % _LONG_EVERY == 0 else 46
    kind = "n" if x == _NOW else "d" if x < _NOW else "g"
    share = 1.0 if x == _NOW else 0.25 + 0.75 * x / _NOW if x < _NOW else 1 - 0.66 * (x - _NOW) / (_WIDTH - _NOW)
    made = Markup('<line class="{}" x1="{}" x2="{}" y1="{}" y2="60" opacity="{:.2f}"/>')
    return made.format(kind, x, x, top, share)
