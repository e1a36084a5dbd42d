"""The skill that teaches a coding agent to use `aj`, packaged with the program: `aj skill install` copies it."""
