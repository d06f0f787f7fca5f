"""The bytes of each core in files, with a text file that describes them.

The bytes are those of `gridlayout.core_bytes`. `saving.py` writes them in small pieces, `opened.py`
maps the files and reads any part of the tensor (`windows.py`, `elements.py`). The description is
the sidecar (`sidecar.py`); every number in it is compared with the layout's before it is used.
Files are renamed when they are complete (`staged.py`).
"""
