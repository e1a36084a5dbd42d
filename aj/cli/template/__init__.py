"""aj template: templates of a project."""
