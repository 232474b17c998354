"""docs/config.md names every key of the configuration, and none that does not exist."""

import re
from pathlib import Path
from typing import get_args

from pydantic import BaseModel

from headrace.schemas.config import Config, DatasetConfig
from headrace.schemas.variables import VariableConfig

PAGE = (Path(__file__).parents[2] / "docs" / "config.md").read_text(encoding="utf-8")


def keys_of_tables(text: str) -> set[str]:
    """Keys in the first column of every table."""
    rows = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {key for cell in rows for key in re.findall(r"`([\w.]+)`", cell)}


def section(title: str) -> str:
    return PAGE.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0]


def test_every_section_has_its_keys_and_no_other():
    models = {name: field.annotation for name, field in Config.model_fields.items() if name != "datasets"}
    assert set(re.findall(r"^## (\w+)$", PAGE, re.MULTILINE)) == {"datasets", *models}
    for name, model in models.items():
        assert isinstance(model, type)
        assert issubclass(model, BaseModel)
        fields = set(model.model_fields)
        assert keys_of_tables(section(name)) == fields, name


def test_data_sets_and_variables_have_their_keys_and_no_other():
    about, variables = section("datasets").split("Settings of one variable:")
    [kinds] = [f.annotation for name, f in DatasetConfig.model_fields.items() if name == "variables"]
    assert kinds is not None
    roles = {f"variables.{role}" for role in kinds.model_fields}
    assert keys_of_tables(about) == set(DatasetConfig.model_fields) - {"variables"} | roles
    assert keys_of_tables(variables) == set(VariableConfig.model_fields)


def test_choices_of_a_key_are_all_on_the_page():
    for section_name in Config.model_fields.keys() - {"datasets"}:
        model = Config.model_fields[section_name].annotation
        assert isinstance(model, type)
        for name, field in model.model_fields.items():
            choices = [c for c in get_args(field.annotation) if isinstance(c, str)]
            assert all(f"`{choice}`" in section(section_name) for choice in choices), name
