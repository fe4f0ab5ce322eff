"""Questions with known answers about public documents of six kinds, rebuilt from pinned sources.

python -m benchmarks.questions build DIR [--mirror DIR]    download the sources, write DIR/docs and DIR/questions.jsonl
python -m benchmarks.questions score DIR --half seen       recall of `extract` and of two SQLite FTS5 set-ups

Nobody wrote these questions for this project: they are commit messages, questions that readers asked about a conversation,
queries with their SQL, attribute labels, filters, and FAQ headings. `picks/` names the chosen ones; the documents stay out of the
repository.
"""
