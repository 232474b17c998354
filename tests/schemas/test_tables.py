"""The tables are the bridge between the phases: their columns are a contract."""

import pyarrow as pa
import pytest

from headrace.schemas.tables import FORMAT_VERSION, TABLES, Table

STEP, COUNT, VALUE, TEXT = pa.int32(), pa.int64(), pa.float64(), pa.string()
COLUMNS = {  # the contract of DESIGN section 3
    "datasets": "dataset_id timeseries_uri attributes_uri num_basins num_steps time_start step_seconds calendar weight"
    " fingerprint",
    "segments": "dataset_id segment start stop time_start",
    "time_order": "dataset_id step store_step",
    "periods": "dataset_id split start stop time_start time_last",
    "basins": "dataset_id basin basin_id store_row splits",
    "variables": "dataset_id variable role array unit scale offset storage_fill_value model_fill_value dtype dims"
    " chunk_shape shard_shape present",
    "arrays": "dataset_id store array variable kind metadata objects content decode_rule",
    "chunks": "dataset_id variable basin_chunk time_chunk basin_start basin_stop time_start time_stop state"
    " stored_nbytes valid_count fingerprint",
    "runs": "dataset_id variable basin start stop",
    "windows": "dataset_id split segment basin start stop num_windows",
    "dropped": "dataset_id split basin reason num_windows",
    "moments": "dataset_id variable basin start stop count mean m2 min max",
    "stats": "scope dataset_id basin variable count mean std min max",
    "statics": "dataset_id basin variable value",
}
TYPES = {  # by name, wherever the column appears; a time is text in one table and a step in another
    **dict.fromkeys(
        ["dataset_id", "variable", "split", "basin_id", "reason", "state", "fingerprint", "scope", "role"], TEXT
    ),
    **dict.fromkeys(
        ["basin", "start", "stop", "segment", "basin_chunk", "time_chunk", "basin_start", "basin_stop"], STEP
    ),
    **dict.fromkeys(["count", "num_windows", "valid_count", "stored_nbytes", "step_seconds"], COUNT),
    **dict.fromkeys(["mean", "m2", "std", "min", "max", "value", "weight", "scale", "offset"], VALUE),
}

each_table = pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)


def test_every_table_of_the_design_exists() -> None:
    assert set(TABLES) == set(COLUMNS)
    assert all(name == table.name for name, table in TABLES.items())


@each_table
def test_columns_of_the_design_are_there_with_their_types_and_never_null(table: Table) -> None:
    assert set(COLUMNS[table.name].split()) <= set(table.schema.names)
    for field in table.schema:
        assert not field.nullable
        assert field.type == TYPES.get(field.name, field.type), field.name


@each_table
def test_key_columns_exist(table: Table) -> None:
    assert set(table.key) <= set(table.schema.names)
    assert len(set(table.key)) == len(table.key)


@each_table
def test_schema_names_its_table_and_format_version(table: Table) -> None:
    expected = {b"headrace.table": table.name.encode(), b"headrace.format_version": str(FORMAT_VERSION).encode()}
    assert table.schema.metadata == expected
