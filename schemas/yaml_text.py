"""YAML as people mean it: numbers and truth values by the 1.2 rules, dates as text, a repeated key refused.

PyYAML follows YAML 1.1, where an unquoted basin id 01013500 is an octal number and 12_345 is 12345, 1e-3 is text,
12:30 is 750, NO is false and a date becomes an object. Each of these would silently change what a user wrote.
"""

import re
from collections.abc import Hashable
from typing import Any

import yaml

_INT = re.compile(r"^[-+]?(?:0|[1-9][0-9]*|0x[0-9a-fA-F]+)$")
_FLOAT = re.compile(
    r"^[-+]?(?:(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+]?[0-9]+)?|\.[0-9]+(?:[eE][-+]?[0-9]+)?|[1-9][0-9]*[eE][-+]?[0-9]+"
    r"|\.inf|\.Inf)$|^\.(?:nan|NaN)$"
)
_BOOL = re.compile(r"^(?:true|True|TRUE|false|False|FALSE)$")
_REPLACED = {f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "timestamp")}


class TextLoader(yaml.SafeLoader):
    """Safe loader with the rules above."""


TextLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in pairs if tag not in _REPLACED]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
TextLoader.add_implicit_resolver("tag:yaml.org,2002:int", _INT, list("-+0123456789"))
TextLoader.add_implicit_resolver("tag:yaml.org,2002:float", _FLOAT, list("-+0123456789."))
TextLoader.add_implicit_resolver("tag:yaml.org,2002:bool", _BOOL, list("tTfF"))


def _construct_mapping(loader: TextLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    seen: set[Hashable] = set()
    for key_node, _ in node.value:
        if key_node.tag == "tag:yaml.org,2002:merge":
            continue
        key = loader.construct_object(key_node, deep=True)
        repeated = isinstance(key, Hashable) and key in seen
        if repeated or not isinstance(key, Hashable):
            problem = "appears twice" if repeated else "is not a plain name"
            mark = key_node.start_mark
            msg = f"key {key!r} {problem} (line {mark.line + 1})"
            raise yaml.constructor.ConstructorError(None, None, msg, mark)
        seen.add(key)
    loader.flatten_mapping(node)  # `<<: *anchor`: the mapping's own keys come last and win
    return {loader.construct_object(k, deep=True): loader.construct_object(v, deep=True) for k, v in node.value}


TextLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping)


class TextDumper(yaml.SafeDumper):
    """Safe dumper that quotes what either version of YAML would take for something else than text."""


TextDumper.yaml_implicit_resolvers = {
    first: [*TextLoader.yaml_implicit_resolvers.get(first, []), *yaml.SafeDumper.yaml_implicit_resolvers.get(first, [])]
    for first in {*TextLoader.yaml_implicit_resolvers, *yaml.SafeDumper.yaml_implicit_resolvers}
}


def read_yaml(text: str) -> Any:
    """Parse YAML text; raises :class:`yaml.YAMLError`."""
    return yaml.load(text, Loader=TextLoader)


def write_yaml(data: object) -> str:
    """Return YAML text in the order of the data."""
    return yaml.dump(data, Dumper=TextDumper, sort_keys=False, allow_unicode=True)
