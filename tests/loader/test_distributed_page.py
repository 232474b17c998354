"""The example of docs/distributed.md runs as it stands, in a group of one; other tests hold real groups to the rest."""

import re
import socket

import torch

from headrace.loader.window_loader import WindowLoader
from tree import REPOSITORY


def test_the_example_trains_and_saves_a_state_that_goes_on(index, tmp_path, monkeypatch):
    page = (REPOSITORY / "docs" / "distributed.md").read_text(encoding="utf-8")
    (script,) = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    group = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    for name, value in (group | {"GLOO_SOCKET_IFNAME": "lo"}).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "train_ranks"}
    exec(compile(script, "train_ranks.py", "exec"), names)
    names["main"](str(index.path), epochs=2)
    saved = torch.load("checkpoint.pt")
    assert all(torch.isfinite(weight).all() for weight in saved["model"].values())
    with WindowLoader(index, "train") as loader:
        loader.load_state_dict(saved["loader"])
        assert loader.epoch == 2
