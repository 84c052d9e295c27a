"""The contributor kit: `new` writes a small working plug-in, `check` holds any plug-in to the contract."""
