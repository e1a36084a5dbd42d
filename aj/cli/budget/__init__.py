"""aj budget: what may be spent in a day, a week or a month."""
