"""The same council by other libraries, each in its own virtual environment, and by Council.

`workload.py` has the prompts and their order. A contestant is a module with the class `Contestant` (see
`workload.Council`). `worker.py` measures one contestant in one process. `catalogue.py` lists the contestants and
installs them. Only the floors and Council run without an installation. None of the other libraries stores anything;
Council stores every run on disk.
"""
