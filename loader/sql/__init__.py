"""Named queries, one per file; parameters are bound, never formatted in."""

from importlib.resources import files


def query(name: str) -> str:
    """Return the text of the named query."""
    return files(__name__).joinpath(f"{name}.sql").read_text(encoding="utf-8")
