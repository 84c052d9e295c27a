"""The contributor kit: `new` writes a small plug-in that works, `check` holds any plug-in to the contract."""
