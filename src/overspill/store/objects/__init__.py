"""Outputs as objects in a bucket (S3, Google Cloud Storage, Azure), which many machines may share.

Bytes are written once and never changed. For anything that only one worker may do, such as taking a name, an object is created or
replaced on a condition that the service checks. Keys, below the prefix of the store:

    runs/<run>                         a process that uses the store; its date is the last sign of life
    openings/<session>                 the first line of a session's journal
    temporary/<run>/<session>          this session goes with its process
    holds/<session>/<hold>/<run>       this process has the session open
    names/<SHA-256 of a name>          which session has the name, and who holds it
    families/<SHA-256 of a family>/<session>.<retention>    this session is of that family; for a listing
    data/<session>/<id>/<start>        a part of an output, with `done` when it is complete, `used`, and `removed`
    journal/<session>/<when>.<hold>.<first>.<last>    the nth events of one hold
    used/<session>                     when it was last closed
    measured                           what was kept when the limits were last applied
    trash/<session>/<id>               a removed output, whose bytes go when no reader can be left
"""
