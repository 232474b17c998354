"""Pages about an index and about a run: facts in, one HTML file out that needs nothing else.

Numbers come from the tables of an index (:mod:`headrace.report.index_page`) or from the folder of a run
(:mod:`headrace.report.run_page`); figures are SVG drawn here, words and layout are the templates'.
"""
