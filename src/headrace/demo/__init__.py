"""Two small synthetic data sets, so that the whole of Headrace can be tried without a download.

`weather` draws daily weather, `catchment` turns it into streamflow, `stores` writes both as Zarr stores that differ in
everything that real ones differ in, with a configuration file that explains itself.
"""
