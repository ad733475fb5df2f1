"""The papers' figures and tables, computed again.

``experiment`` says what an experiment is and what it answers, ``catalogue`` lists all of them by id, ``batch`` runs them in
parallel and ``files`` writes what they found. The experiments of one paper are modules of one package: ``drf``, ``pf``,
``bbf``, ``baa``.
"""
