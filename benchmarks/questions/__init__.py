"""Questions with known answers about public documents of six kinds, rebuilt from pinned sources.

python -m benchmarks.questions build DIR [--mirror DIR]    download the sources, write DIR/docs and DIR/questions.jsonl
python -m benchmarks.questions score DIR --half seen       recall of `extract` and of two SQLite FTS5 set-ups

The material existed before: commit messages, questions that people asked in a conversation or about it, foreign keys, attribute
labels, lists, and FAQ headings. `picks/` names what was chosen; the documents stay out of the repository.
"""
