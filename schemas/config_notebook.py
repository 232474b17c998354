"""What a prompt and a notebook show of a configuration: a line, and the whole as YAML."""

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.schemas.config import Config


def config_line(config: "Config") -> str:
    """Return data sets, names and window on one line."""
    window = config.window.spec()
    names = ", ".join(f"{role}s={list(config.names(role))}" for role in ("input", "target", "static"))
    shape = f"{window.length} steps, targets on the last {window.target_length}"
    return f"Config(datasets={list(config.datasets)}, {names}, window={shape})"


def config_html(config: "Config") -> str:
    """Return the same as a headline that opens into the resolved YAML."""
    from headrace.schemas.config_io import dump_config

    text = escape(dump_config(config))
    body = f'<pre style="max-height:30em;overflow:auto">{text}</pre>'
    return f"<details><summary><code>{escape(config_line(config))}</code></summary>{body}</details>"
