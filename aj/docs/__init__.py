"""The documentation as Markdown pages, packaged with the program: `aj docs` prints them."""
