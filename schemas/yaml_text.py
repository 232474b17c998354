"""YAML as people mean it: numbers by the 1.2 rules, dates as text, a repeated key refused.

PyYAML follows YAML 1.1, where an unquoted basin id 01013500 is an octal number, 1e-3 is text, 12:30 is 750 and a date
becomes an object. Each of these would silently change what a user wrote.
"""

import re
from typing import Any

import yaml

_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F]+)$")
_FLOAT = re.compile(r"^[-+]?(?:(?:0|[1-9][0-9_]*)\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[1-9][0-9]*[eE][-+]?[0-9]+|\.inf|\.Inf)$|^\.(?:nan|NaN)$")
_REPLACED = {f"tag:yaml.org,2002:{name}" for name in ("int", "float", "timestamp")}


class TextLoader(yaml.SafeLoader):
    """Safe loader with the rules above."""


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag not in _REPLACED]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
TextLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
TextLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))


def _construct_mapping(loader: TextLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    loader.flatten_mapping(node)
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        key = loader.construct_object(key_node, deep=True)
        if key in mapping:
            mark = key_node.start_mark
            msg = f"key {key!r} appears twice (line {mark.line + 1})"
            raise yaml.constructor.ConstructorError(None, None, msg, mark)
        mapping[key] = loader.construct_object(value_node, deep=True)
    return mapping


TextLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


class TextDumper(yaml.SafeDumper):
    """Safe dumper whose text :class:`TextLoader` reads back unchanged."""


TextDumper.yaml_implicit_resolvers = {k: list(v) for k, v in TextLoader.yaml_implicit_resolvers.items()}


def read_yaml(text: str) -> Any:  # noqa: ANN401 - YAML holds anything
    """Parse YAML text; raises :class:`yaml.YAMLError`."""
    return yaml.load(text, Loader=TextLoader)  # noqa: S506 - a SafeLoader subclass


def write_yaml(data: object) -> str:
    """Return YAML text in the order of the data."""
    return yaml.dump(data, Dumper=TextDumper, sort_keys=False, allow_unicode=True)
