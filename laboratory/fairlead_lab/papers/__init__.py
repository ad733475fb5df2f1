"""The papers' figures and tables, computed again.

``experiment`` says what an experiment is and what it answers, ``catalogue`` lists all of them by id, and ``runner`` runs them in
parallel and writes what they found. The experiments of one paper are modules of one package: ``drf``, ``pf``,
``bbf``, ``baa``.
"""
