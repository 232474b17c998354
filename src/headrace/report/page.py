"""Templates → one HTML file that needs nothing else: no network, no other file, no script but its own."""

import base64
import hashlib
from functools import cache
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

GENERATOR = '<meta name="generator" content="Headrace report">'
"""Stands near the top of every page: the mark of a file that a new report may replace."""


def render(template: str, **context: object) -> str:
    """Return a page.

    Every text is escaped unless it is :class:`markupsafe.Markup`. The page's own policy lets a browser run its one
    script and load nothing at all.

    Parameters
    ----------
    template
        File in ``templates/``.
    context
        What it shows.
    """
    script = _asset("script.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return (
        _environment()
        .get_template(template)
        .render(
            **context,
            generator=Markup(GENERATOR),
            style=Markup(_asset("style.css")),
            script=Markup(script),
            script_digest=digest,
        )
    )


def place_name(place: Path | str) -> str:
    """Return the last two parts of a folder's path or of a URL."""
    text = place if isinstance(place, str) else place.resolve().as_posix()
    return "/".join(text.rstrip("/").split("/")[-2:])


def _asset(name: str) -> str:
    return files("headrace.report").joinpath("templates", name).read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("headrace.report", "templates"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
