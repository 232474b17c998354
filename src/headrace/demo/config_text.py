"""The demo's configuration file, word for word: it is read as documentation as much as it is run."""

CONFIG_TEXT = """\
# The Headrace demo: one LSTM trained jointly on two data sets that agree on nothing but what they mean.
#
#   build-index demo.yml --out index       reads every chunk once, writes small Parquet tables
#   headrace inspect index gaps            what is missing, where
#   train --config demo.yml --index index  streams shuffled windows of both data sets into the model
#
# Paths are relative to this file. `headrace check demo.yml` opens every store and lists whatever does not fit.

datasets:
  alpine:                                     # Zarr format 2, dims (basin, time), as hydrodataset writes it
    timeseries: alpine_timeseries.zarr        # a path, or s3://bucket/prefix/alpine_timeseries.zarr
    attributes: alpine_attributes.zarr
    basins: all                               # or a list of ids, a text file with one id a line, or one per split
    t_range_train: ["1985-10-01", "1993-09-30"]   # first and last day of the *targets*, both included;
    t_range_valid: ["1993-10-01", "1994-09-30"]   # the inputs of a window may reach back before it
    t_range_test: ["1994-10-01", "1997-09-30"]
    variables:
      relevant:                               # inputs: the model's name on the left, the store's on the right
        precipitation: pcp_mm
        temperature: tair_c
        potential_evapotranspiration: pet_mm
      target:
        streamflow:
          physical: q_cms                     # m3/s in the store …
          per_area: area_km2                  # … becomes a depth by the basin's area,
          unit: mm/day                        # so that both data sets have one target
          valid_min: 0                        # less is missing; the store's own flag (-999 by `_FillValue`) is known
      constant:
        area: area_km2
        elevation: elev_mean_m
        forest_fraction: forest_frac
        soil_depth: soil_depth_m
        permeability: permeability

  lowland:                                    # Zarr format 3, dims (time, basin), other names, units and chunks
    timeseries: lowland_timeseries.zarr
    attributes: lowland_attributes.zarr
    basins: all
    t_range_train: ["1990-01-01", "1996-12-31"]   # each data set has its own periods
    t_range_valid: ["1997-01-01", "1997-12-31"]
    t_range_test: ["1998-01-01", "1999-12-31"]
    variables:
      relevant:
        precipitation: precipitation_sum
        temperature: {physical: temperature_mean, offset: -273.15, unit: degC}     # stored in K
        potential_evapotranspiration: potential_evaporation
      target:
        streamflow: {physical: streamflow_mmd, unit: mm/day, valid_min: 0}
      constant:
        area: catchment_area
        elevation: altitude
        forest_fraction: {physical: forest_percent, scale: 0.01, unit: "1"}        # stored in %
        soil_depth: {physical: soil_depth_cm, scale: 0.01, unit: m}                # stored in cm
        permeability: aquifer_share

# A window is 120 days of inputs; its target is the streamflow of the last day.
window: {hindcast_length: 119, forecast_length: 1, warmup_length: 119, stride: 1}

missing:
  target_nan_policy: drop_any_nan             # no training window without its target
  missing_policy: fill                        # a missing input becomes its mean; fill_and_mask tells the model as well

normalization: {method: standard, scope: global}   # statistics of the training periods; or per_dataset, per_basin

sampling: {mode: weighted_by_sample, max_batches_per_epoch: 50}   # a short epoch, to see progress soon

loader: {batch_size: 256, seed: 0}

train:                                        # under half a minute on one core; a real model trains longer
  hidden_size: 32
  train_epochs: 5
  learning_rate: 1.0e-2
  learning_rate_schedule: {3: 3.0e-3, 4: 1.0e-3}   # from this epoch on (counted from 0)
  loss: nse                                   # weighs every basin alike, however much water it carries
  dropout: 0.0
  device: cpu
"""
