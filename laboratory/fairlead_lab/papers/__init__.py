"""The papers' figures and tables, computed again.

``experiment`` defines an experiment and its result, ``statements`` what the text of a paper says of it, ``catalogue`` lists
all experiments by id, and ``runner`` runs them and writes what they found. Each paper is a package: ``drf``, ``pf``, ``bbf``, ``baa``.
"""
