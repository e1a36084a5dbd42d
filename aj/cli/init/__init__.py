"""aj init: new projects."""
