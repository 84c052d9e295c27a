"""From trials to records: plan, run and resume, on one machine or many."""
