"""What pydantic finds wrong with a configuration → plain sentences: dotted key, what was found, what may be there."""

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from types import NoneType
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from headrace.schemas.config import SPLITS, Config
from headrace.schemas.logins import without_login

_BASINS = "all, a list of ids, or a text file with one id a line"
_FORMS = {
    "basins": f"{_BASINS}, or {{train: …, valid: …, test: …}} of these",
    **{f"basins.{split}": _BASINS for split in SPLITS},
    **{f"t_range_{split}": "two dates, [first, last], or null" for split in SPLITS},
    **dict.fromkeys(
        ("relevant", "target", "constant"), "a list of array names, or a mapping name: array, or name: {physical: …}"
    ),
    "memory_budget": "auto, a number of bytes, or text such as 2GiB",
    "cache_limit": "a number of bytes, or text such as 20GiB, or null",
    "device_memory_budget": "a number of bytes, or text such as 8GiB, or null",
    "num_workers": "auto or a whole number of at least 0",
    "amp": "true, false, bf16 or fp16",
}
"""Dotted end of a key → what may stand there, where one sentence says it better than the types of a union."""
_VARIABLE = "the name of an array, or {physical: …} with more settings"
_WORDS = {
    "string_type": "text",
    "string_too_short": "text that is not empty",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "dict_type": "a mapping, key: value",
    "model_type": "a mapping, key: value",
    "tuple_type": "a list",
    "too_short": "at least one entry",
}
_LIMITS = {
    "greater_than": ("a number above", "gt"),
    "greater_than_equal": ("a number of at least", "ge"),
    "less_than": ("a number below", "lt"),
    "less_than_equal": ("a number of at most", "le"),
}


def explain(error: ValidationError, where: str, overrides: Sequence[str] = ()) -> str:
    """Put each complaint on a line of its own: dotted key, what was found, what may stand there.

    Parameters
    ----------
    error
        What pydantic says of a :class:`Config`.
    where
        File or other origin of the values.
    overrides
        Texts ``a.b=value`` that took the place of some; complaints of theirs name them, without the values.
    """
    lines: dict[str, list[str]] = {}
    origins: dict[str, None] = {}
    set_keys = [override.partition("=")[0].strip() for override in overrides]
    for item in _without_other_branches(error.errors(include_url=False)):
        *parents, last = item["loc"] or ("",)
        if item["type"] == "extra_forbidden":
            path, model, _ = _walk(parents)
            known = sorted(model.model_fields)
            if not path:  # --set loss=mae: a key that a section has
                known += [f"{name}.{last}" for name, section in _sections() if last in section.model_fields]
            unknown = ".".join([*path, str(last)])
            lines[f"unknown key {unknown}: {_near(str(last), known)}"] = []
            made = [key for key in set_keys if f"{key}.".startswith(f"{unknown}.")]
            origins |= dict.fromkeys(f"--set {key}" for key in made) or _origins(unknown, where, set_keys)
            continue
        path, _, nullable = _walk(item["loc"])
        if item["type"] == "missing" and isinstance(last, str):
            lines[f"{'.'.join(path)} is missing"] = []
            origins |= _origins(".".join(path[:-1]), where, set_keys)
            continue
        if item["type"] in ("missing", "too_long") and path[-1].isdecimal():
            path = path[:-1]  # too few entries: the list is wrong, not one of its entries
        dotted = ".".join(path)
        origins |= _origins(dotted, where, set_keys)
        head = f"{dotted} = {_shown(item.get('input'))}" if dotted else "whole"
        problem = _problem(item, path, nullable=nullable)
        problems = lines.setdefault(head, [])
        problems += [problem] if problem not in problems else []
    text = [f"  - {head}" + (f": {_joined(problems)}" if problems else "") for head, problems in lines.items()]
    count = f"{len(text)} problems" if len(text) > 1 else "1 problem"
    return f"configuration is not valid ({count})\n  where:    {' and '.join(origins)}\n" + "\n".join(text)


def _origins(dotted: str, where: str, set_keys: Sequence[str]) -> dict[str, None]:
    """Return where what stands at a key comes from: an override of it, or else the file and what overrides a part."""
    whole = [key for key in set_keys if f"{dotted}.".startswith(f"{key}.")]
    parts = [key for key in set_keys if not dotted or key.startswith(f"{dotted}.")]
    return dict.fromkeys([*([] if whole else [where]), *(f"--set {key}" for key in [*whole, *parts])])


def _sections() -> Iterator[tuple[str, type[BaseModel]]]:
    """Yield the sections of a configuration that are mappings of keys."""
    for name, field in Config.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield name, field.annotation


def _near(name: str, known: Sequence[str]) -> str:
    inside = [key for key in known if key.endswith(f".{name}")]
    if inside:
        return f"did you mean {' or '.join(inside)}?"
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"valid keys: {', '.join(known)}"


def _problem(item: ErrorDetails, path: Sequence[str], *, nullable: bool) -> str:
    """Return one complaint in words; ``expected …`` unless a rule of ours says it."""
    if item["type"] == "value_error":
        return item["msg"].removeprefix("Value error, ")
    form = _form(path)
    if form is not None:
        return f"expected {form}"
    words = _WORDS.get(item["type"])
    context: Mapping[str, Any] = item.get("ctx", {})
    if item["type"] == "literal_error":
        words = str(context["expected"]).replace("'", "")
    elif item["type"] in _LIMITS:
        text, key = _LIMITS[item["type"]]
        words = f"{text} {context[key]:g}"
    if words is None:
        return item["msg"]
    as_key = " as key" if item["loc"][-1] == "[key]" else ""
    return f"expected {words}{as_key}" + (" or null" if nullable else "")


def _form(path: Sequence[str]) -> str | None:
    if len(path) == 5 and path[:1] == ["datasets"] and path[2] == "variables":
        return _VARIABLE
    return _FORMS.get(".".join(path[-2:]), _FORMS.get(path[-1]) if path else None)


def _joined(problems: Sequence[str]) -> str:
    """Join what a union's branches expect into one sentence."""
    expected = [p.removeprefix("expected ") for p in problems if p.startswith("expected ")]
    others = [p for p in problems if not p.startswith("expected ")]
    return "; ".join([*others, *([f"expected {' or '.join(expected)}"] if expected else [])])


def _shown(value: object) -> str:
    """Return a value as the file has it, cut to 60 characters; user name and password of a URL are left out."""
    text = {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else ""
    text = without_login(text or repr(value))
    return text if len(text) <= 60 else text[:57] + "..."


def _walk(loc: Iterable[int | str]) -> tuple[list[str], type[BaseModel], bool]:
    """Follow an error's location through the models; drop pydantic's names for the branches of a union.

    Returns
    -------
    tuple
        The parts of the dotted path, the model they lead to, and whether null may stand there.
    """
    model: type[BaseModel] = Config
    in_map = nullable = False
    path: list[str] = []
    for part in loc:
        field = model.model_fields.get(str(part))
        if in_map:
            in_map = nullable = False
        elif field is not None:
            found = _models_in(field.annotation)
            model = found[0] if found else model
            in_map = "dict[" in str(field.annotation)
            nullable = NoneType in get_args(field.annotation)
        elif not isinstance(part, int):
            continue
        else:
            nullable = False
        path.append(str(part))
    return path, model, nullable


def _without_other_branches(items: Sequence[ErrorDetails]) -> list[ErrorDetails]:
    """Of the complaints of one union keep those from inside a branch, if any: that branch was meant."""
    unions = []
    for item in items:
        path = _walk(item["loc"])[0]
        same = takewhile(lambda pair: pair[0] == str(pair[1]), zip(path, item["loc"], strict=False))
        unions.append(item["loc"][: len(list(same))])
    inside = [len(item["loc"]) > len(union) + 1 for item, union in zip(items, unions, strict=True)]
    meant = {union for union, deep in zip(unions, inside, strict=True) if deep}
    return [item for item, union, deep in zip(items, unions, inside, strict=True) if deep or union not in meant]


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for arg in getattr(annotation, "__args__", ()) for m in _models_in(arg)]
