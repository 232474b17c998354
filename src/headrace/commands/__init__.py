"""The command line, one file per subcommand; each is imported only when it is run."""
