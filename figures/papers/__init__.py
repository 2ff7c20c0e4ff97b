"""The figures and tables of the papers: a folder for each paper, a script for each figure."""
