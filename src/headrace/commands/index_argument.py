"""How a command takes an index: a folder of this machine, or an ``s3://`` URL."""

import click

from headrace.index_place import IndexPath, index_path


class IndexArgument(click.ParamType[IndexPath]):
    """A folder becomes a Path; a URL stays text, whose two slashes a Path would join."""

    name = "index"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> IndexPath:
        """Return the place; a URL of something else than an S3 bucket is a configuration error."""
        where = param.get_error_hint(ctx) if param is not None and ctx is not None else ""
        return index_path(str(value), where=where.strip("'"))


INDEX = IndexArgument()
