"""The command line: thin, each command one file. Heavy imports happen inside the commands."""
