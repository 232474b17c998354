"""Objects by name, in a folder on a disk or under a prefix of an S3 bucket, behind one small interface.

A location and a :class:`headrace.schemas.storage_config.StorageConfig`, neither of which holds a secret, are all that
crosses processes; each process finds credentials for itself and keeps one client for each bucket and configuration.
The client's library is loaded by the first request, so that who reads from a disk never pays for it.
"""

from headrace.objects.folder import ObjectFolder, open_folder
from headrace.objects.location import Location, is_remote, parse_location
from headrace.objects.stat import ObjectStat

__all__ = ["Location", "ObjectFolder", "ObjectStat", "is_remote", "open_folder", "parse_location"]
