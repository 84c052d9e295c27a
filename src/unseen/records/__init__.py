"""The records of our own studies, as files that `unseen records` makes; `index.json` lists them."""
