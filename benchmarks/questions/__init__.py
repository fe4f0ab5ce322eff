"""Questions with known answers about public documents of six kinds, rebuilt from pinned sources.

python -m benchmarks.questions build DIR [--set NAME] [--mirror DIR]      download the sources, write the documents and questions
python -m benchmarks.questions score DIR --half seen                      recall of `extract` and of two SQLite FTS5 set-ups

The material existed before: commit messages, questions that people asked in a conversation or about it, foreign keys, attribute
labels, lists, and FAQ headings. `sets/` names the sources of each set and `picks/` what was chosen in them; the documents stay
out of the repository.
"""
