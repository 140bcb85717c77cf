"""The command line: options, prompts, exit statuses. A command's body is one call into `app`."""
