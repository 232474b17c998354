"""Compiled code is kept between runs or made anew; where Numba may make none, that is said."""

import importlib
import resource
import sys
from pathlib import Path

import numba
import pytest

from headrace.compiled import compiled
from headrace.schemas.errors import ConfigError


def doubled(value):
    return 2 * value


@pytest.fixture
def kept(tmp_path, monkeypatch) -> Path:
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("pattern", ["*.nbi", "*.nbc"])
def test_kept_code_that_is_damaged_is_compiled_anew_and_kept_again(kept, pattern):
    assert compiled(doubled)(3) == 6
    (file,) = kept.rglob(pattern)
    file.write_bytes(file.read_bytes()[:20])
    for hits in (0, 1):
        again = compiled(doubled)
        assert again(3) == 6
        assert sum(again.stats.cache_hits.values()) == hits


def test_code_is_not_kept_where_no_byte_can_be_written(kept):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, before[1]))
    try:
        assert compiled(doubled)(3) == 6
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(kept.rglob("*.nb?")) == []
    assert compiled(doubled)(3) == 6
    assert len(list(kept.rglob("*.nb?"))) == 2


def test_kept_code_is_outdated_by_a_change_of_what_it_calls_in_another_file(kept, monkeypatch):
    folder = kept / "code"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    inner = "from headrace.compiled import compiled\n@compiled\ndef inner(x):\n    return {} * x\n"
    outer = (
        "from {0} import inner\nfrom headrace.compiled import compiled\n@compiled\ndef outer(x):\n    return inner(x)\n"
    )
    (folder / "outer_code.py").write_text(outer.format("inner_code"))
    for factor in (2, 10):
        (folder / "inner_code.py").write_text(inner.format(factor))
        importlib.invalidate_caches()
        assert importlib.import_module("outer_code").outer(3) == factor * 3
        for name in ("outer_code", "inner_code"):
            del sys.modules[name]


def test_numba_that_is_told_not_to_compile_is_named_on_first_use(monkeypatch):
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    refused = compiled(doubled)
    with pytest.raises(ConfigError, match="unset NUMBA_DISABLE_JIT"):
        refused(3)
