"""The sections of a report: what each shows, as values for the templates."""
