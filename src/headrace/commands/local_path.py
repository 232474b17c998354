"""How a command takes what lies on a disk only: a URL there is an error, not a folder that is called ``s3:``."""

from pathlib import Path

import click

from headrace.objects import is_remote


class LocalPath(click.ParamType[Path]):
    """A path of this machine."""

    name = "path"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the path; refuse a URL."""
        if is_remote(str(value)):
            self.fail(f"{value} is a URL; only stores and indexes may lie in a bucket", param, ctx)
        return Path(str(value))


LOCAL_PATH = LocalPath()
