"""How Sphinx builds the pages of this folder: ``make docs``."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent / "_extensions"))

project = "opinionpool"
author = "the opinionpool authors"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "generated"]
exclude_patterns = ["_extensions"]
smartquotes = False  # options begin with two hyphens

myst_heading_anchors = 3

# Docstrings are in NumPy's convention, with types in words.
default_role = "py:obj"
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "mixed"
napoleon_google_docstring = False
napoleon_use_ivar = True
napoleon_use_rtype = False
python_display_short_literal_types = True
add_module_names = False

html_theme = "furo"
html_title = "opinionpool"
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#1f5fa6", "color-brand-content": "#1f5fa6"},
    "dark_css_variables": {"color-brand-primary": "#8ab8ee", "color-brand-content": "#8ab8ee"},
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
