"""Hear from the object stores of a configuration before libraries are loaded that take seconds.

A wrong address may be silent for as long as a first answer is waited for; what follows would only add to that.
"""

from pathlib import Path

from headrace.objects import is_remote, parse_location
from headrace.objects.client import client_for
from headrace.objects.contact import contact_with
from headrace.schemas.config import Config
from headrace.schemas.config_io import load_config
from headrace.schemas.errors import ConfigError, HeadraceError, StorageError
from headrace.trainer.run_folder import RunFolder


def hear_from_buckets(config: Config) -> None:
    """Send one request to each address where stores of a configuration lie; whatever answers will do.

    Raises
    ------
    StorageError
        Nothing answers there.
    """
    places = [place for dataset in config.datasets.values() for place in (dataset.timeseries, dataset.attributes)]
    for uri in (place for place in places if place is not None and is_remote(place)):
        try:
            location = parse_location(uri)
            client = client_for(location.bucket, config.storage)
            contact = contact_with(client.endpoint)
        except ConfigError:
            return  # whoever opens the store says more about it
        if contact.answered:
            continue
        try:
            client.stat(location.joined("zarr.json"))
        except StorageError:
            if not contact.answered:
                raise


def hear_from_buckets_of_run(folder: Path) -> None:
    """Do so for the configuration of a run; what is wrong with that is said by whoever opens the run."""
    try:
        config = load_config(RunFolder.open(folder).config)
    except HeadraceError:
        return
    hear_from_buckets(config)
