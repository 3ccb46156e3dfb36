"""The web page: an HTML file, a style sheet, JavaScript modules, and their route."""
